"""The shipped coupons: what the file holds, on one grid, with what is missing marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from causalpima.examples.resin_coupons import STRAIN, resin_coupons
from causalpima.inference.data.multimodal import MultimodalData

FILE = Path(__file__).resolve().parents[2] / "examples" / "data" / "resin_coupons" / "resin_coupons.npz"
CURVES = {"compression": "comp", "tension": "tens"}


@pytest.fixture(scope="module")
def raw() -> dict[str, np.ndarray]:
    with np.load(FILE) as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def data() -> MultimodalData:
    return resin_coupons()


def test_shapes_ranges_and_units(data: MultimodalData) -> None:
    assert data.n_samples == 144
    assert {name: values.shape for name, values in data.modalities.items()} == {
        "image": (144, 72, 96, 3),
        "compression": (144, 100),
        "tension": (144, 100),
    }
    assert all(values.dtype == np.float32 for values in data.modalities.values())
    assert 0 <= data.modalities["image"].min() < data.modalities["image"].max() <= 1
    assert data.units == {"compression": "MPa", "tension": "MPa"}
    assert {name: (axis.name, axis.unit) for name, axis in data.axes.items()} == dict.fromkeys(CURVES, ("strain", ""))


def test_nine_rows_lack_a_curve_and_stay(data: MultimodalData) -> None:
    assert data.present["image"].all()
    assert (~data.present["compression"]).sum() == 1
    assert (~data.present["tension"]).sum() == 8
    assert (~data.present["compression"] & ~data.present["tension"]).sum() == 0


@pytest.mark.parametrize("name", CURVES)
def test_presence_is_the_one_of_the_file(data: MultimodalData, raw: dict[str, np.ndarray], name: str) -> None:
    np.testing.assert_array_equal(data.present[name], raw[f"has_{CURVES[name]}"])
    np.testing.assert_array_equal(data.present[name], data.observed[name].any(axis=1))


@pytest.mark.parametrize("name", CURVES)
def test_only_measured_strains_are_observed(data: MultimodalData, raw: dict[str, np.ndarray], name: str) -> None:
    strain = raw[f"{CURVES[name]}_strain"]
    for row in np.flatnonzero(data.present[name]):
        expected = [strain[row, 0] <= value <= strain[row, -1] for value in STRAIN[name]]
        np.testing.assert_array_equal(data.observed[name][row], expected)
    assert not data.modalities[name][~data.observed[name]].any()
    assert np.isfinite(data.modalities[name]).all()


@pytest.mark.parametrize("name", CURVES)
def test_every_position_and_every_test_is_used(data: MultimodalData, name: str) -> None:
    observed = data.observed[name]
    assert observed.any(axis=0).all()
    assert observed[data.present[name]].sum(axis=1).min() >= 12
    assert (np.diff(STRAIN[name]) > 0).all()


@pytest.mark.parametrize("name", CURVES)
def test_curves_are_interpolated_linearly(data: MultimodalData, raw: dict[str, np.ndarray], name: str) -> None:
    strain, stress = (raw[f"{CURVES[name]}_{part}"].astype(float) for part in ("strain", "stress"))
    for row in (0, 77, 143, 100):
        position = int(np.flatnonzero(data.observed[name][row])[7])
        at = STRAIN[name][position]
        right = int(np.argmax(strain[row] > at))
        left = right - 1
        share = (at - strain[row, left]) / (strain[row, right] - strain[row, left])
        expected = stress[row, left] + share * (stress[row, right] - stress[row, left])
        assert data.modalities[name][row, position] == pytest.approx(expected, rel=1e-5)


def test_factors_are_balanced_and_named(data: MultimodalData, raw: dict[str, np.ndarray]) -> None:
    for name in ("resin", "sterilization", "type"):
        levels = np.array(data.factor_levels[name])
        np.testing.assert_array_equal(levels[data.factors[name]], raw[name])
    counts = np.zeros((8, 3))
    np.add.at(counts, (data.factors["resin"], data.factors["sterilization"]), 1)
    assert (counts == 6).all()
    rigid = {data.factor_levels["resin"][code] for code in data.factors["resin"][data.factors["type"] == 0]}
    assert rigid == {"Asiga DentaGuide", "Liqcreate Biomed", "Phrozen AquaGray"}


def test_pairs_of_a_plate_are_one_group(data: MultimodalData, raw: dict[str, np.ndarray]) -> None:
    assert data.groups is not None
    keys = list(zip(raw["resin"], raw["sterilization"], raw["plate"], strict=True))
    pairs = {(key, int(group)) for key, group in zip(keys, data.groups, strict=True)}
    assert len(pairs) == len(set(keys)) == len(set(data.groups.tolist())) == 72
    assert (np.bincount(data.groups) == 2).all()


def test_names_tell_rows_apart(data: MultimodalData) -> None:
    assert data.sample_names is not None
    assert len(set(data.sample_names.tolist())) == 144


def test_photos_are_averaged_over_squares(data: MultimodalData) -> None:
    small = resin_coupons(shrink=12).modalities["image"]
    assert small.shape == (144, 6, 8, 3)
    np.testing.assert_allclose(small[7, 2, 5], data.modalities["image"][7, 24:36, 60:72].mean(axis=(0, 1)), rtol=1e-5)


def test_the_seed_plays_no_part(data: MultimodalData) -> None:
    np.testing.assert_array_equal(resin_coupons(seed=3).modalities["tension"], data.modalities["tension"])


def test_other_shrinks_are_refused() -> None:
    with pytest.raises(ValueError, match="shrink: expected one of 1, 2, 3, 4, 6, 8, 12, got 5"):
        resin_coupons(shrink=5)


def test_licence_and_attribution_are_beside_the_file() -> None:
    assert "Copyright (c) 2024 CMU-BORG" in (FILE.parent / "LICENSE").read_text(encoding="utf-8")
    readme = (FILE.parent / "README.md").read_text(encoding="utf-8")
    assert "CMU-BORG/Commercial-Resins-for-Biohybrids-SciData" in readme
    assert "MIT" in readme
