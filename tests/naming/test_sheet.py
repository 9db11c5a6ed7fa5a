"""The contact sheet: which samples it shows, for every kind of modality, and how it is drawn."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from causalpima.inference.analyses.sheet import EXAMPLES, NEAREST, RANDOM, Sheet, make_sheet
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.reporting.contact_sheet import ROWS_PER_PAGE, draw_contact_sheet, write_contact_sheet
from causalpima.models.batch import Standardisation

N, C = 60, 4


def samples() -> tuple[MultimodalData, np.ndarray]:
    """Three clusters (and an empty one) seen as image, curve, single number and vector; some lack the curve."""
    rng = np.random.default_rng(0)
    cluster = np.arange(N) % 3
    image = rng.random((N, 6, 9, 3)).astype(np.float32)
    values = {
        "photo": image,
        "stress": (cluster[:, None] + np.linspace(0, 1, 7) + 0.1 * rng.normal(size=(N, 7))).astype(np.float32),
        "mass": (10.0 + cluster + 0.1 * rng.normal(size=N)).astype(np.float32)[:, None],
        "content": rng.normal(size=(N, 5)).astype(np.float32),
    }
    present = {name: np.ones(N, dtype=bool) for name in values}
    present["stress"][cluster == 1] = False
    measured = np.ones((N, 7), dtype=bool)
    measured[:, 5:] = cluster[:, None] == 0
    measured &= present["stress"][:, None]
    kinds = dict(zip(values, ("image", "curve", "vector", "vector"), strict=True))
    data = MultimodalData("coupons", values, present, kinds, observed={"stress": measured})  # type: ignore[arg-type]
    return data, cluster


def sheet(called: tuple[str, ...] = ()) -> tuple[Sheet, MultimodalData, np.ndarray]:
    data, cluster = samples()
    loc = np.stack([cluster + 0.01 * np.arange(N), np.zeros(N)], axis=1)
    scales = {name: Standardisation() for name in data.modalities}
    return make_sheet(data, scales, (np.eye(C)[cluster], loc), called), data, cluster


def test_it_shows_the_medoid_first_and_what_was_measured_of_it() -> None:
    found, data, cluster = sheet()
    assert found.sizes == (20, 20, 20, 0)
    medoids = np.flatnonzero(cluster == 0)[[9, 10]]  # the two in the middle of twenty
    assert found.examples["mass"][0][0] in data.modalities["mass"][medoids]
    assert [len(values) for values in found.examples["photo"]] == [EXAMPLES, EXAMPLES, EXAMPLES, 0]
    assert [len(values) for values in found.examples["stress"]] == [EXAMPLES, 0, EXAMPLES, 0], "cluster 1 has no curve"
    assert np.isnan(found.examples["stress"][2][:, 5:]).all()
    assert np.isfinite(found.examples["stress"][0]).all()
    assert np.isnan(found.modalities["photo"].exemplars[3]).all()


def test_drawn_members_and_the_least_certain_one_show_what_the_medoid_hides() -> None:
    """A merged cluster: 40 samples at 0, of which medoid and neighbours are all, and 20 far from them."""
    data, _ = samples()
    far = np.arange(N) >= 40
    r = np.stack([np.where(np.arange(N) == 50, 0.6, 0.99), np.where(np.arange(N) == 50, 0.4, 0.01)], axis=1)
    loc = np.stack([10.0 * far + 0.01 * np.arange(N), np.zeros(N)], axis=1)
    scales = {name: Standardisation() for name in data.modalities}
    numbered = dataclasses.replace(
        data, modalities={**data.modalities, "mass": np.arange(N, dtype=np.float32)[:, None]}
    )
    found = make_sheet(numbered, scales, (r, loc))
    shown = found.examples["mass"][0].reshape(-1)
    assert found.roles["mass"][0] == ("nearest",) * NEAREST + ("random",) * RANDOM + ("least certain",)
    assert (shown[:NEAREST] < 40).all()
    assert shown[-1] == 50
    assert len(set(shown)) == EXAMPLES
    assert found.certainty[0] == pytest.approx(((59 * 0.99 + 0.6) / 60, 0.6))
    again = make_sheet(numbered, scales, (r, loc))
    np.testing.assert_array_equal(again.examples["mass"][0].reshape(-1), shown)


def test_drawn_members_are_the_same_in_every_modality() -> None:
    found, data, _ = sheet()
    of = {name: found.examples[name][0][NEAREST:] for name in ("photo", "mass")}
    for picture, mass in zip(of["photo"], of["mass"], strict=True):
        row = int(np.flatnonzero((data.modalities["mass"] == mass).all(1))[0])
        np.testing.assert_array_equal(picture, data.modalities["photo"][row])


def test_a_small_cluster_has_no_more_than_its_members() -> None:
    data, _ = samples()
    r = np.eye(2)[(np.arange(N) >= 6).astype(int)]
    scales = {name: Standardisation() for name in data.modalities}
    found = make_sheet(data, scales, (r, np.zeros((N, 1))))
    assert found.roles["mass"][0] == (*("nearest",) * NEAREST, "least certain")


def test_every_cluster_has_a_row_with_its_number_size_and_name() -> None:
    found, *_ = sheet(("red,small", "", "", ""))
    figure = draw_contact_sheet(found, np.arange(C))
    texts = [text.get_text() for text in figure.texts]
    assert [text for text in texts if text.startswith("cluster")] == [
        f"cluster {c}\nn = {n}" for c, n in enumerate((20, 20, 20, 0))
    ]
    assert "red\nsmall\ncertainty 1.00\nleast 1.00" in texts
    assert {"photo", "stress", "mass", "content"} <= set(texts)
    inside = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert inside.count("empty") == 4
    assert inside.count("not measured") == 1


def test_panels_of_one_modality_have_the_same_limits() -> None:
    found, *_ = sheet()
    axes = draw_contact_sheet(found, np.arange(C)).axes
    curves = [ax for ax in axes if len(ax.lines) and np.size(ax.lines[0].get_xdata()) == 7]
    assert len({ax.get_ylim() for ax in curves}) == 1
    words = [ax.get_xlabel() for ax in axes if ax.images]
    assert [words.count(word) for word in ("", "random", "least certain")] == [3 * NEAREST, 3 * RANDOM, 3]
    labelled = [ax for ax in axes if ax.get_xlabel() and not ax.images]
    assert sorted(ax.get_xlabel() for ax in labelled) == ["entry", "mass", "position"], "below the last row only"


def test_many_clusters_go_to_several_pages(tmp_path: Path) -> None:
    data, _ = samples()
    data = dataclasses.replace(
        data, modalities={"mass": data.modalities["mass"]}, present={"mass": data.present["mass"]}
    )
    r = np.eye(ROWS_PER_PAGE + 2)[np.arange(N) % (ROWS_PER_PAGE + 2)]
    many = make_sheet(data, {"mass": Standardisation()}, (r, np.zeros((N, 1))))
    files = write_contact_sheet(many, tmp_path / "sheet.png")
    assert [file.name for file in files] == ["sheet.png", "sheet_2.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


@pytest.mark.parametrize("transform", ["log", "asinh"])
def test_scales_of_the_model_are_those_of_the_sheet(transform: str, tmp_path: Path) -> None:
    data, cluster = samples()
    scales = {name: Standardisation(transform=transform, knee=1.0) for name in data.modalities}  # type: ignore[arg-type]
    values = {name: np.abs(array) + 0.1 for name, array in data.modalities.items()}
    clusters = np.eye(C)[cluster], np.zeros((N, 1))
    found = make_sheet(dataclasses.replace(data, modalities=values), scales, clusters)
    axes = draw_contact_sheet(found, np.arange(C)).axes
    assert {ax.get_yscale() for ax in axes if len(ax.lines) and np.size(ax.lines[0].get_xdata()) == 7} == {transform}
