from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab import write_manifest

from causalpima.inference.data.preparation.manifest import read_manifest
from causalpima.inference.data.preparation.options import Options
from causalpima.inference.data.preparation.roles import find_roles

LINES = [
    "id,photo,curve,mass,batch,replicate_of,resin,remark,site,empty",
    "S1,a.PNG,a.csv,1.5,1,,soft,new,here,",
    r"S2,p\b.tif,b.txt,2,1,S1,rigid,old,here,",
    "S3,c.jpeg,c.xy,3e1,2,,soft,bent,here,",
    "S4,,,,2,,rigid,dry,here,",
]
FOUND = {
    "id": "id",
    "photo": "images",
    "curve": "curves",
    "mass": "scalars",
    "batch": "covariates",
    "replicate_of": "group",
    "resin": "labels",
    "remark": "ignore",
    "site": "ignore",
    "empty": "ignore",
}


def roles(folder: Path, *lines: str, **options: Any) -> dict[str, str]:
    path = write_manifest(folder, *(lines or LINES))
    return {r.column.header: r.kind for r in find_roles(read_manifest(path), Options(path, **options))}


def test_roles_by_name_and_content(tmp_path: Path) -> None:
    assert roles(tmp_path) == FOUND


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({"id": "remark"}, {"id": "ignore", "remark": "id"}),
        ({"labels": ("mass",)}, {"mass": "labels", "resin": "ignore"}),
        ({"labels": ()}, {"resin": "ignore"}),
        ({"covariates": ("site", "batch")}, {"site": "covariates"}),
        ({"group": "batch"}, {"batch": "group", "replicate_of": "ignore"}),
        ({"ignore": ("photo", "MASS")}, {"photo": "ignore", "mass": "ignore"}),
        ({"scalars": ("batch",)}, {"batch": "scalars", "mass": "ignore"}),
    ],
)
def test_a_flag_names_all_columns_of_its_role(tmp_path: Path, options: dict[str, Any], changed: dict[str, str]) -> None:
    assert roles(tmp_path, **options) == FOUND | changed


def test_an_identifier_by_its_entries(tmp_path: Path) -> None:
    assert roles(tmp_path, "mass,coupon", "1,a", "2,b") == {"mass": "scalars", "coupon": "id"}
    assert roles(tmp_path, "mass,coupon", "1,a", "2,a", "3,b", "4,b") == {"mass": "scalars", "coupon": "labels"}


def test_a_few_entries_that_are_no_numbers(tmp_path: Path) -> None:
    values = [str(value) for value in range(19)]
    assert roles(tmp_path, "mass", *values, "n.d.") == {"mass": "scalars"}
    with pytest.raises(ValueError, match="expected a column with paths of images or curves, or with numbers, got none"):
        roles(tmp_path, "mass", *values[:5], "n.d.")


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"labels: expected a column of .*, got 'colour'; there are id, photo"):
        roles(tmp_path, labels=("colour",))
    with pytest.raises(ValueError, match="labels: expected a column of one role, got 'mass', which --scalars names"):
        roles(tmp_path, labels=("mass",), scalars=("mass",))
