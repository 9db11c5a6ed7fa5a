"""The paper's preprocessing of the lattices: standardised pictures, and flipped copies that stay together."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from test_lattice_files import write_curve, write_picture

from causalpima.examples.lattices import lattices, with_flips, with_standardised_images
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.tensors import split_samples
from causalpima.inference.data.validation import validate


@pytest.fixture
def samples() -> MultimodalData:
    """Eight named lattices, of which the third has no picture."""
    data = lattices(8, seed=1, side=16)
    image = data.modalities["image"].copy()
    image[2] = 0.0
    return dataclasses.replace(
        data,
        modalities={**data.modalities, "image": image},
        present={**data.present, "image": np.arange(8) != 2},
        sample_names=np.array([f"L{n}" for n in range(8)]),
    )


def test_every_picture_has_mean_zero_and_variance_one(samples: MultimodalData) -> None:
    found = with_standardised_images(samples).modalities["image"]
    there = samples.present["image"]
    np.testing.assert_allclose(found[there].mean(axis=(1, 2, 3)), 0.0, atol=1e-6)
    np.testing.assert_allclose(found[there].var(axis=(1, 2, 3)), 1.0, rtol=1e-5)
    assert not found[~there].any()
    assert found.dtype == np.float32


def test_standardising_forgets_lamp_and_contrast_and_nothing_else(samples: MultimodalData) -> None:
    image = samples.modalities["image"]
    gain, offset = np.linspace(0.5, 3.0, 8)[:, None, None, None], np.linspace(-1.0, 1.0, 8)[:, None, None, None]
    lit = dataclasses.replace(samples, modalities={**samples.modalities, "image": gain * image + offset})
    found, expected = (with_standardised_images(data).modalities for data in (lit, samples))
    np.testing.assert_allclose(found["image"], expected["image"], atol=1e-5)
    np.testing.assert_array_equal(found["curve"], samples.modalities["curve"])
    for row in np.flatnonzero(samples.present["image"]):
        assert np.corrcoef(expected["image"][row].ravel(), image[row].ravel())[0, 1] == pytest.approx(1.0, abs=1e-6)


def test_a_picture_of_one_grey_value_becomes_zeros(samples: MultimodalData) -> None:
    image = samples.modalities["image"].copy()
    image[0] = 0.3
    grey = dataclasses.replace(samples, modalities={**samples.modalities, "image": image})
    assert not with_standardised_images(grey).modalities["image"][0].any()


def test_each_picture_is_there_in_four_ways(samples: MultimodalData) -> None:
    found = with_flips(samples)
    validate(found)
    image = samples.modalities["image"]
    assert found.n_samples == 8 + 3 * 7
    np.testing.assert_array_equal(found.modalities["image"][:8], image)
    by_group: dict[int, list[np.ndarray]] = {}
    for group, picture in zip(found.groups if found.groups is not None else (), found.modalities["image"], strict=True):
        by_group.setdefault(int(group), []).append(picture)
    for row in range(8):
        ways = [image[row], image[row, ::-1], image[row, :, ::-1], image[row, ::-1, ::-1]]
        np.testing.assert_array_equal(np.stack(by_group[row]), np.stack(ways if row != 2 else ways[:1]))


def test_all_else_of_a_lattice_is_repeated(samples: MultimodalData) -> None:
    found = with_flips(samples)
    assert found.groups is not None
    assert found.sample_names is not None
    np.testing.assert_array_equal(found.modalities["curve"], samples.modalities["curve"][found.groups])
    for part in ("factors", "measurements", "present"):
        before, after = getattr(samples, part), getattr(found, part)
        assert set(after) == set(before)
        for name in before:
            np.testing.assert_array_equal(after[name], before[name][found.groups])
    assert found.sample_names[[0, 8, 15, 22]].tolist() == ["L0", "L0, upside down", "L0, mirrored", "L0, turned"]
    assert len(set(found.sample_names.tolist())) == found.n_samples


def test_copies_stay_on_one_side_of_the_split() -> None:
    data = lattices(91, seed=2, side=8, flips=True)
    part = split_samples(data.n_samples, 0.09, 0, 0.1, data.factors, data.groups)
    assert data.groups is not None
    sides = [set(part[data.groups == group].tolist()) for group in range(91)]
    assert {len(side) for side in sides} == {1}
    counts = [sum(side == {name} for side in sides) for name in ("train", "validation", "test")]
    assert counts == [74, 8, 9]


def test_groups_that_there_are_stay(samples: MultimodalData) -> None:
    plates = np.arange(8) // 2 + 10
    found = with_flips(dataclasses.replace(samples, groups=plates))
    assert found.groups is not None
    assert sorted(set(found.groups.tolist())) == [10, 11, 12, 13]
    assert np.bincount(found.groups)[10:].tolist() == [8, 5, 8, 8]


def test_options_of_the_generated_lattices() -> None:
    plain = lattices(20, seed=3, side=8)
    both = lattices(20, seed=3, side=8, standardise_images=True, flips=True)
    assert plain.groups is None
    assert both.n_samples == 80
    expected = with_flips(with_standardised_images(plain)).modalities["image"]
    np.testing.assert_array_equal(both.modalities["image"], expected)
    assert both.bayes_ceiling == plain.bayes_ceiling


def test_options_of_the_measured_lattices(tmp_path: Path) -> None:
    for name in ("images_microscope", "force_disp_curves"):
        (tmp_path / name).mkdir()
    for number, name in enumerate(("a-1", "b-2", "c-2")):
        pixels = np.random.default_rng(number).integers(0, 200, (480, 470), dtype=np.uint8)
        write_picture(tmp_path, name, pixels)
        write_curve(tmp_path, name, 0.0, 1.0)
    both = lattices(data=str(tmp_path), side=10, standardise_images=True, flips=True)
    validate(both)
    assert both.modalities["image"].shape == (12, 10, 10, 1)
    np.testing.assert_allclose(both.modalities["image"].var(axis=(1, 2, 3)), 1.0, rtol=1e-5)
    assert both.factors["type"].tolist() == [0, 1, 1] * 4
