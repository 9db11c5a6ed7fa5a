"""What of the data a resumed run insists on, and in what others are said to differ."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.data.multimodal import Axis, MultimodalData, sample_subset
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.data.stored import DataFingerprint
from causalpima.inference.data.tensors import fingerprint

POSITIONS = np.array([0.0, 1.0, 2.0])


def data(**changes: Any) -> MultimodalData:
    made = MultimodalData(
        name="samples",
        modalities={"curve": np.arange(12, dtype=np.float32).reshape(4, 3)},
        present={"curve": np.ones(4, dtype=bool)},
        kinds={"curve": "curve"},
        factors={"phase": np.array([0, 1, 0, 1])},
        factor_levels={"phase": ("a", "b")},
        axes={"curve": Axis("strain", POSITIONS, "%")},
        units={"curve": "MPa"},
    )
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": {"curve": Axis("strain", 2 * POSITIONS, "%")}},
        {"axes": {"curve": Axis("strain", POSITIONS, "1")}},
        {"axes": {"curve": Axis("time", POSITIONS, "%")}},
        {"axes": {}},
        {"units": {"curve": "Pa"}},
        {"kinds": {"curve": "vector"}, "axes": {}},
        {"factors": {"phase": np.array([1, 0, 0, 1])}},
        {"factor_levels": {"phase": ("b", "a")}},
        {"environment": np.array([0, 0, 1, 1]), "environment_names": ("none", "heated")},
    ],
    ids=str,
)
def test_positions_units_and_factors_are_part_of_the_data(changes: dict[str, Any]) -> None:
    assert fingerprint(data(**changes)) != fingerprint(data())
    assert fingerprint(data()) == fingerprint(data())


VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)
NAMED = data(
    sample_names=np.array(["a", "b", "c", "d"]),
    covariates={"batch": np.zeros(4, int)},
    covariate_levels={"batch": ("x",)},
)
REVERSED = np.arange(4)[::-1]


def changed_values() -> np.ndarray:
    values = VALUES.copy()
    values[2, 1] += 1
    return values


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (NAMED, None),
        (dataclasses.replace(NAMED, name="elsewhere"), None),
        (sample_subset(NAMED, np.arange(3)), "3 samples (in the run 4)"),
        (sample_subset(NAMED, REVERSED), "its samples in another order, the first that moved is 0 (d)"),
        (
            dataclasses.replace(NAMED, sample_names=NAMED.sample_names[REVERSED]),  # type: ignore[index]
            "its samples in another order, the first that moved is 0 (d)",
        ),
        (
            dataclasses.replace(NAMED, modalities={"curve": VALUES[REVERSED]}),
            "its samples in another order, the first that moved is 0 (a)",
        ),
        (
            dataclasses.replace(NAMED, modalities={"curve": changed_values()}),
            "other values of 'curve' in 1 of 4 samples, first in sample 2 (c)",
        ),
        (
            dataclasses.replace(NAMED, sample_names=np.array(["a", "x", "c", "y"])),
            "2 samples that are not in the run, the first is 1 (x)",
        ),
        (dataclasses.replace(NAMED, units={"curve": "Pa"}), "'curve' with unit Pa (in the run MPa)"),
        (dataclasses.replace(NAMED, axes={}), "'curve' with positions none (in the run strain [%] from 0 to 2"),
        (
            dataclasses.replace(
                NAMED,
                modalities={"x": VALUES},
                present={"x": NAMED.present["curve"]},
                kinds={"x": "vector"},
                axes={},
                units={},
            ),
            "the modalities x (in the run curve)",
        ),
        (
            dataclasses.replace(NAMED, covariates={"batch": np.zeros(4, int)}, covariate_levels={"batch": ("y",)}),
            "other covariate 'batch'",
        ),
        (dataclasses.replace(NAMED, groups=np.arange(4)), "also groups, of which it knows nothing"),
        (dataclasses.replace(NAMED, factors={"phase": np.array([1, 1, 0, 1])}), "other labels 'phase'"),
        (dataclasses.replace(NAMED, factors={}), "none of its labels 'phase'"),
    ],
)
def test_in_what_samples_differ(other: MultimodalData, difference: str | None) -> None:
    known = DataFingerprint.from_plain(DataFingerprint.of(NAMED).to_plain())
    found = known.difference(other)
    assert found is None if difference is None else found is not None and found.startswith(difference)
    if difference is not None and "labels" in difference:
        assert known.difference(other, with_labels=False) is None


def test_gaps_count_and_values_on_disk_have_the_same_fingerprint(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(40, 3, 4))
    values[3, 1, 2], values[5] = np.nan, np.nan
    xr.Dataset({"image": (("sample", "y", "x"), values)}).to_netcdf(tmp_path / "d.nc", engine="h5netcdf")
    loaded, stored = (as_multimodal(tmp_path / "d.nc", ReadOptions(in_memory=way)) for way in ("yes", "no"))
    known = DataFingerprint.of(loaded)
    assert known.difference(stored) is None
    values[3, 1, 2] = 0.0
    assert (
        known.difference(as_multimodal({"image": values}))
        == "other values of 'image' in 1 of 40 samples, first in sample 3"
    )
