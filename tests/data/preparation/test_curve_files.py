from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from lab import refused

from causalpima.inference.data.preparation.curve_files import Curve, read_curve
from causalpima.inference.data.preparation.fields import Header

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
    assert refused(lambda: read(tmp_path, text, "1", "load")) == (
        "no column 'load', as --curve_y says, among 3 (time, Stress, Strain)"
    )
    assert refused(lambda: read(tmp_path, text, "4")).startswith("no column '4', as --curve_x says, among 3")


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
        ("1,2\nbroken,3\n4,5\n", "line 2, column 1: 'broken' is no number"),
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


@pytest.mark.parametrize(
    ("text", "x", "y", "remarks"),
    [
        (",strain,stress\n0,0.1,5\n1,0.2,6\n", [0.1, 0.2], [5, 6], (("columns not used", "number 1"),)),
        ("No.,strain,stress (MPa)\n1,0.1,5\n2,0.2,6\n", [0.1, 0.2], [5, 6], (("columns not used", "No."),)),
        ("strain stress\n1 0.1 5\n2 0.2 6\n", [0.1, 0.2], [5, 6], (("columns not used", "number 1"),)),
        ("t;load\n0;1,234.5\n1;1,300.5\n", [0, 1], [1234.5, 1300.5], ()),
        ("t;load\n0;1 234,5\n1;1 300,5\n", [0, 1], [1234.5, 1300.5], ()),
        ("t,load\n0,1'234.5\n1,1'300.5\n", [0, 1], [1234.5, 1300.5], ()),
        ("x;y\n1,18;1.050\n1,25;1.100\n", [1.18, 1.25], [1050, 1100], ()),
        ("x;y;state\n1;5;OK\n2;6;OK\n", [1, 2], [5, 6], (("columns not used", "state"),)),
        ("x,y\n1,5\n2,\n3,7\n", [1, 3], [5, 7], (("points without a finite number left out", "1"),)),
        ("x,y\n1,5\n2,6\nEnd\n", [1, 2], [5, 6], (("lines below the numbers left out", "line 4: 'End'"),)),
        ("Strain;Stress\n%;MPa\n1;5\n2;6\n", [1, 2], [5, 6], ()),
    ],
)
def test_nothing_is_lost_or_misread(
    tmp_path: Path, text: str, x: list[float], y: list[float], remarks: tuple[tuple[str, str], ...]
) -> None:
    curve = read(tmp_path, text)
    np.testing.assert_array_equal([curve.x, curve.y], [x, y])
    assert curve.remarks == remarks


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("strain,stress\n1,2\n2,3\n3,>3.0\n4,>3.0\n", "line 4, column 2 (stress): '>3.0' is no number"),
        ("time,y\n00:01:30,5\n00:01:31,6\n", "'00:01:30' is a time of the clock; write it in seconds"),
        (
            "time,y,z\n12:30:05.250,5,1\n12:30:06,6,2\n",
            "line 2, column 1 (time): '12:30:05.250' is a time of the clock",
        ),
        ("x;y\n1.050;5\n1.100;6\n", "column 1 (x): expected numbers with one reading, got '1.050' (line 2), which is "),
        ("x;y\n1,5;5\n1.7;6\n", "column 1 (x): expected one decimal sign, got '1.7' (line 3) and '1,5' (line 2)"),
        ("x,y\n0,5,12,5\n1,5,13,5\n", "line 1: expected names of 4 columns as in the rows below, got 2: 'x,y'"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in refused(lambda: read(tmp_path, text))


def test_a_decimal_sign_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x;y\n1.050;5\n1.100;6\n")
    np.testing.assert_array_equal(read_curve(tmp_path / "a", decimal=",").x, [1050, 1100])
    np.testing.assert_array_equal(read_curve(tmp_path / "a", decimal=".").x, [1.05, 1.1])


JCAMP = "##TITLE=a\n##JCAMP-DX=4.24\n##XUNITS=1/CM\n##YUNITS=ABSORBANCE\n##XFACTOR=1\n##YFACTOR=0.5\n##FIRSTX=10\n"


@pytest.mark.parametrize(
    "data",
    ["10 2 4 6\n16 8 10", "10+2+4+6\n16+8+10", "10B D F\n16 H A0", "10BKKK\n16HK", "10BKU\n16HK"],
)
def test_jcamp(tmp_path: Path, data: str) -> None:
    curve = read(tmp_path, f"{JCAMP}##LASTX=18\n##NPOINTS=5\n##XYDATA=(X++(Y..Y))\n{data}\n##END=\n")
    np.testing.assert_array_equal([curve.x, curve.y], [[10, 12, 14, 16, 18], [1, 2, 3, 4, 5]])
    assert (curve.x_header, curve.y_header) == (Header("", "1/CM"), Header("", "ABSORBANCE"))
    assert "expected 6 points as NPOINTS says" in refused(
        lambda: read(tmp_path, f"{JCAMP}##LASTX=20\n##NPOINTS=6\n##XYDATA=(X++(Y..Y))\n{data}\n##END=\n")
    )


def test_jcamp_in_pairs_and_in_other_forms(tmp_path: Path) -> None:
    curve = read(tmp_path, f"{JCAMP}##XYPOINTS=(XY..XY)\n10,2; 12,4\n##END=\n")
    np.testing.assert_array_equal([curve.x, curve.y], [[10, 12], [1, 2]])
    assert "got (R++(I..I))" in refused(lambda: read(tmp_path, f"{JCAMP}##XYDATA=(R++(I..I))\n1 2\n##END=\n"))


def test_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(b"x,y\n1,5\n2,6\n")
    np.testing.assert_array_equal(read(tmp_path, packed).y, [5, 6])
    assert refused(lambda: read(tmp_path, packed[:-9])).startswith("unreadable: it is a damaged gzip file")
