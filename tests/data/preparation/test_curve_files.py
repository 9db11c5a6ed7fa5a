from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lab import refused

from inference.data.preparation.curve_files import Curve, read_curve
from inference.data.preparation.headers import Header

X, Y = [0.0, 0.5, 1.0], [0.0, 12.5, 20.0]
STRAIN, STRESS, NONE = Header("Strain", "%"), Header("Stress", "MPa"), Header("", "")


def read(folder: Path, text: str | bytes, *columns: str) -> Curve:
    path = folder / "curve.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_curve(path, *columns)


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("Strain [%],Stress (MPa)\n0,0\n0.5,12.5\n1,20\n", (STRAIN, STRESS)),
        ("Strain [%];Stress (MPa)\r\n0;0\r\n0,5;12,5\r\n1;20\r\n", (STRAIN, STRESS)),
        ("Strain [%]\tStress (MPa)\n0\t0\n0,5\t12,5\n1\t20\n", (STRAIN, STRESS)),
        ("# Strain [%] Stress (MPa)\n0 0\n  0.5   12.5\n1 20\n", (STRAIN, STRESS)),
        ("0 0\n0.5 1.25e1\n1 20", (NONE, NONE)),
        ("0, 0\n0.5, 12.5\n1, 20", (NONE, NONE)),
        ("0,0 0,0\n0,5 12,5\n1 20\n", (NONE, NONE)),
        ("Machine 2\nDate;1.2.26\n\nStrain;Stress\n(%);(MPa)\n0;0\n0,5;12,5\n1;20\n", (STRAIN, STRESS)),
        ('"Strain [%]","Stress (MPa)"\n"0","0"\n"0.5","12.5"\n"1","20"\n', (STRAIN, STRESS)),
        ("Strain [%],Stress (MPa)\n0,0\n0.5,12.5\n0.7,\n,14\n1,20\nEnd of test\n", (STRAIN, STRESS)),
        ("Strain [%];Stress (MPa);\n0;0;\n0.5;12.5;\n1;20;\n", (STRAIN, STRESS)),
        ("Sample: C01\n0 0\n0.5 12.5\n1 20\n", (NONE, NONE)),
    ],
)
def test_files_of_instruments(tmp_path: Path, text: str, headers: tuple[Header, Header]) -> None:
    curve = read(tmp_path, text)
    np.testing.assert_array_equal(curve.x, X)
    np.testing.assert_array_equal(curve.y, Y)
    if "Sample:" not in text:
        assert (curve.x_header, curve.y_header) == headers


def test_columns_by_number_and_by_name(tmp_path: Path) -> None:
    text = "time [s],Stress [kPa],Strain [-]\n0,1,2\n3,4,5\n"
    by_name, by_number = read(tmp_path, text, "strain", "STRESS"), read(tmp_path, text, "3", "2")
    for curve in (by_name, by_number):
        np.testing.assert_array_equal([curve.x, curve.y], [[2, 5], [1, 4]])
        assert (curve.x_header, curve.y_header) == (Header("Strain", "-"), Header("Stress", "kPa"))
    assert refused(lambda: read(tmp_path, text, "1", "load")) == "no column 'load' among 3 (time, Stress, Strain)"
    assert refused(lambda: read(tmp_path, text, "4")).startswith("no column '4' among 3")


def test_encodings(tmp_path: Path) -> None:
    text = "T (°C);R (µV)\n1;2\n3;4\n"
    for encoding in ("utf-8-sig", "cp1252", "utf-16"):
        assert read(tmp_path, text.encode(encoding)).x_header == Header("T", "°C")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected two columns of numbers and two rows, got fewer"),
        ("1\n2\n3\n", "expected two columns of numbers and two rows, got fewer"),
        ("a,b\n1,2\n", "expected two columns of numbers and two rows, got fewer"),
        ("1,2\nbroken,3\n4,5\n", "text among the numbers: 'broken,3'"),
        ("1,2\n3,4,5,6\n7,8\n", "rows of different length"),
        ("1,nan\n2,inf\n3,4\n", "expected at least two points, got 1"),
        (b"\x89PNG\0\0", "unreadable: it is no text"),
    ],
)
def test_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert refused(lambda: read(tmp_path, text)).startswith(reason)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    assert refused(lambda: read_curve(tmp_path / "none.csv")) == "missing file"
    assert refused(lambda: read_curve(tmp_path)) == "unreadable: Is a directory"
