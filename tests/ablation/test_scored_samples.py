"""Hashes of the samples that scores are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.ablation.records import HELD_OUT, LABELS, MEASURE, samples_of, scored_in_words

PARTS = ("train", "validation", "test")


def summary(split: str = "all", held_out: str = "validation", likelihood: str = "normal") -> dict[str, Any]:
    return {
        "evaluation": {"split": split, "n_samples": 3},
        "held_out_log_likelihood": {"split": held_out},
        "modalities": {"image": {"likelihood": likelihood}, "curve": {"likelihood": "student_t"}},
    }


def run(
    folder: Path,
    colour: list[int],
    split: list[int],
    labelled: list[bool] | None = None,
    names: list[str] | None = None,
) -> Path:
    """A run folder with what `posterior.nc` says of its samples."""
    folder.mkdir(exist_ok=True)
    variables = {"factor_colour": ("sample", colour), "split": ("sample", split)}
    if labelled is not None:
        variables["labelled"] = ("sample", labelled)  # type: ignore[assignment]
    coordinates = {"sample": names or np.arange(len(colour)), "split_level": list(PARTS)}
    constant = xr.Dataset(variables, coordinates)
    xr.DataTree.from_dict({"constant_data": constant}).to_netcdf(folder / "posterior.nc", engine="h5netcdf")
    return folder


def of(folder: Path, *arguments: Any, **named: Any) -> tuple[str | None, str | None]:
    found = samples_of(run(folder, *arguments), summary(**named))
    return found.get(LABELS), found.get(HELD_OUT)


def test_the_same_samples_have_the_same_hashes(tmp_path: Path) -> None:
    one = of(tmp_path / "a", [0, 1, 0], [0, 1, 0])
    assert one == of(tmp_path / "b", [0, 1, 0], [0, 1, 0])
    assert len(set(one)) == 2
    assert None not in one


def test_other_samples_of_the_same_number_have_other_hashes(tmp_path: Path) -> None:
    usual = of(tmp_path / "a", [0, 1, 0], [0, 1, 0])
    other_split = of(tmp_path / "b", [0, 1, 0], [1, 0, 0])
    assert (usual[0] == other_split[0], usual[1] == other_split[1]) == (True, False)
    other_data = of(tmp_path / "c", [1, 0, 0], [0, 1, 0])
    assert (usual[0] == other_data[0], usual[1] == other_data[1]) == (False, False)
    renamed = of(tmp_path / "d", [0, 1, 0], [0, 1, 0], None, ["x", "y", "z"])
    assert usual[0] != renamed[0]


def test_what_was_labelled_and_what_is_not_known_do_not_count(tmp_path: Path) -> None:
    split = [0, 0, 1, 1]
    a, _ = of(tmp_path / "a", [0, 1, 0, 1], split, [True, False, False, True], split="unlabelled")
    b, _ = of(tmp_path / "b", [1, 1, 0, 0], split, [True, False, False, True], split="unlabelled")
    c, _ = of(tmp_path / "c", [0, 1, 0, 1], split, [False, True, False, True], split="unlabelled")
    d, _ = of(tmp_path / "d", [-1, 1, 0, -1], split)
    assert a == b == d
    assert a != c


def test_levels_that_are_numbered_in_another_order_are_the_same(tmp_path: Path) -> None:
    found = []
    for folder, codes, levels in (("a", [0, 1, -1], ["red", "blue"]), ("b", [1, 0, -1], ["blue", "red"])):
        (tmp_path / folder).mkdir()
        variables = {"factor_colour": ("sample", codes), "split": ("sample", [0, 1, 1])}
        constant = xr.Dataset(variables, {"sample": range(3), "level_colour": levels, "split_level": list(PARTS)})
        tree = xr.DataTree.from_dict({"constant_data": constant})
        tree.to_netcdf(tmp_path / folder / "posterior.nc", engine="h5netcdf")
        found.append(samples_of(tmp_path / folder, summary()))
    assert found[0] == found[1]
    assert LABELS in found[0]


def test_scores_of_a_split_are_of_its_samples(tmp_path: Path) -> None:
    a, _ = of(tmp_path / "a", [0, 1, 0], [0, 1, 2], split="test")
    b, _ = of(tmp_path / "b", [1, 1, 0], [1, 0, 2], split="test")
    assert a == b


def test_what_a_run_does_not_have_has_no_hash(tmp_path: Path) -> None:
    assert list(samples_of(tmp_path, summary())) == [MEASURE]
    assert of(tmp_path / "a", [0, 1], [0, 0]) == (of(tmp_path / "b", [0, 1], [0, 0])[0], None)
    (tmp_path / "posterior.nc").write_text("no netCDF")
    assert list(samples_of(tmp_path, summary())) == [MEASURE]


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    before = of(tmp_path / "a", [0, 1, 0], [0, 1, 0])
    assert of(tmp_path / "a", [1, 1, 0], [0, 1, 0]) != before


@pytest.mark.parametrize(("likelihood", "word"), [("normal", "density"), ("bernoulli", "mass"), ("poisson", "mass")])
def test_likelihoods_of_counts_have_no_density(tmp_path: Path, likelihood: str, word: str) -> None:
    assert samples_of(tmp_path, summary(likelihood=likelihood))[MEASURE] == f"image {word}, curve density"


def test_words_say_how_many_samples_are_scored() -> None:
    assert scored_in_words(summary()) == "3 samples"
    assert scored_in_words(summary("unlabelled")) == "3 unlabelled samples"
    assert scored_in_words({}) == ""
