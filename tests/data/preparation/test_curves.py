from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab import refused, write_curve, write_manifest

from causalpima.inference.data.preparation.curves import curve_modality
from causalpima.inference.data.preparation.manifest import read_manifest
from causalpima.inference.data.preparation.modality import Modality
from causalpima.inference.data.preparation.options import Options


def modality(folder: Path, *entries: str, **options: Any) -> Modality:
    manifest = read_manifest(write_manifest(folder, "id,pull (N)", *(f"{i},{e}" for i, e in enumerate(entries))))
    return curve_modality(manifest.columns[1], manifest, Options(manifest.path, **options), range(len(entries)))


def test_unequal_curves_on_one_grid_with_units(tmp_path: Path) -> None:
    write_curve(tmp_path / "a.csv", [0, 1, 2], [0, 10, 20])
    write_curve(tmp_path / "b.csv", [1, 4], [1, 7])
    found = modality(tmp_path, "a.csv", "b.csv", "", "c.csv", grid_points=5)
    assert (found.name, found.kind, found.units, found.dims, found.shape) == ("pull", "curve", "MPa", ("Strain",), (5,))
    strain = found.coordinates["Strain"]
    assert (strain.title, strain.units) == ("Strain", "%")
    np.testing.assert_array_equal(strain.values, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(found.read(0), [0, 10, 20, np.nan, np.nan])
    np.testing.assert_array_equal(found.read(1), [np.nan, 1, 3, 5, 7])
    assert refused(lambda: found.read(2)) == "no entry"
    assert refused(lambda: found.read(3)) == "missing file"


def test_bare_files_take_names_of_the_manifest(tmp_path: Path) -> None:
    for name in "ab":
        write_curve(tmp_path / name, [0, 1], [0, 1], header="")
    found = modality(tmp_path, "a", "b")
    assert (found.units, found.dims, found.coordinates["position"].units) == ("N", ("position",), "")
    assert found.notes == ()


def test_other_units_are_not_mixed(tmp_path: Path) -> None:
    write_curve(tmp_path / "a", [0, 1], [0, 1])
    write_curve(tmp_path / "b", [0, 1], [0, 1000], header="Strain [%],Stress (kPa)")
    write_curve(tmp_path / "c", [0, 1], [0, 1], header="Strain,Stress")
    found = modality(tmp_path, "b", "a", "c", "a")
    assert refused(lambda: found.read(0)) == "in 'kPa' where most files have 'MPa'; convert it"
    np.testing.assert_array_equal(found.read(2), [0, 1])
    assert found.notes == (
        "1 files give no units of the positions, taken to be %",
        "1 files give no units of the values, taken to be MPa",
    )


def test_names_that_differ_are_told(tmp_path: Path) -> None:
    write_curve(tmp_path / "a", [0, 1], [0, 1])
    write_curve(tmp_path / "b", [0, 1], [0, 1], header="Strain [%],Load (MPa)")
    assert modality(tmp_path, "a", "b").notes == ("the values are called Load, Stress; see --curve_x and --curve_y",)


def test_a_position_in_other_units_without_saying_so_is_seen(tmp_path: Path) -> None:
    for name in "abc":
        write_curve(tmp_path / name, np.linspace(0, 1, 9), np.ones(9), header="x,y")
    write_curve(tmp_path / "d", [0, 100], [1, 1], header="x,y")
    (note,) = modality(tmp_path, "a", "b", "c", "d", grid_points=200).notes
    assert note.startswith("half of the curves cover less than 1% of the common positions")


def test_no_usable_curve(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pull .N.: expected a usable entry .* none of 2 .row 2 x.csv: missing file"):
        modality(tmp_path, "", "x.csv")
