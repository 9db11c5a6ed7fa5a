from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from lab import write_manifest

from causalpima.inference.data.preparation.manifest import read_manifest


def test_columns_with_units_and_gaps(tmp_path: Path) -> None:
    path = write_manifest(tmp_path, "id, Yield strength (MPa),metal", 'S1, 52.5 ,"Na"', "", "S2,NA", "S3,n/a,Fe")
    manifest = read_manifest(path)
    assert [(c.title, c.name, c.units) for c in manifest.columns] == [
        ("id", "id", ""),
        ("Yield strength", "Yield_strength", "MPa"),
        ("metal", "metal", ""),
    ]
    assert [column.entries for column in manifest.columns] == [("S1", "S2", "S3"), ("52.5", "", ""), ("Na", "", "Fe")]
    assert manifest.n_rows == 3
    assert {column.decimal.sign for column in manifest.columns} == {"."}
    assert manifest.columns[1].written == ("52.5", "NA", "n/a")


@pytest.mark.parametrize("word", ["Yield strength (MPa)", "yield strength", "YIELD_STRENGTH"])
def test_flags_name_columns_in_three_ways(tmp_path: Path, word: str) -> None:
    manifest = read_manifest(write_manifest(tmp_path, "id,Yield strength (MPa)", "S1,5"))
    assert manifest.find(word, "scalars").units == "MPa"
    with pytest.raises(ValueError, match=r"scalars: expected a column of .*, got 'strength'; there are id, Yield"):
        manifest.find("strength", "scalars")


@pytest.mark.parametrize(
    ("content", "decimal"),
    [
        (b"id;mass\nA;1,5\nB;2\n", ","),
        (b"id\tmass\nA\t1,5\nB\t2\n", ","),
        (b"id;mass;names\nA;1.5;b,c\n", "."),
        (codecs.BOM_UTF8 + b"id,mass\r\nA,1\r\n", "."),
        (codecs.BOM_UTF16_LE + "id\tmass\nA\t1,5\n".encode("utf-16-le"), ","),
    ],
)
def test_tables_of_spreadsheets(tmp_path: Path, content: bytes, decimal: str) -> None:
    path = tmp_path / "samples.csv"
    path.write_bytes(content)
    manifest = read_manifest(path)
    assert [column.name for column in manifest.columns][:2] == ["id", "mass"]
    assert manifest.columns[0].entries[0] == "A"
    assert manifest.columns[1].decimal.sign == decimal


def test_windows_encoding(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    path.write_bytes("id,T (°C)\nA,5\n".encode("cp1252"))
    assert read_manifest(path).columns[1].units == "°C"


def test_paths_start_from_the_folder_of_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").touch()
    manifest = read_manifest(write_manifest(tmp_path, "id", "1"))
    assert manifest.resolve("photos/a.png") == tmp_path / "photos" / "a.png"
    assert manifest.resolve(r"photos\a.png") == tmp_path / "photos" / "a.png"
    assert manifest.resolve("/elsewhere/a.png") == Path("/elsewhere/a.png")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a header and a row per sample, got 0 lines"),
        (b"id,photo\n\n,,\n", "expected a header and a row per sample, got 1 lines"),
        (b"\x00\x01\x02", "expected a readable table of samples, got none .it is no text"),
        (b"id,a\n1,2,3\n1,2,3,4\n", "expected as many fields in every row as in the header"),
        (b"id,a b,a_b\n1,2,3\n", "expected columns of different names, got 'a b' and 'a_b'"),
        (b"id,%\n1,2\n", "expected names of columns with letters or digits, got '%'"),
        (b"'',''\n1,2\n", "expected names of columns with letters or digits, got"),
    ],
)
def test_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "samples.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_manifest(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none.csv: expected a readable table .* .No such file"):
        read_manifest(tmp_path / "none.csv")
