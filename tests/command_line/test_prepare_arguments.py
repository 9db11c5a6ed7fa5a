from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.prepare import Options, parse


def test_what_is_not_given_is_left_to_the_files() -> None:
    arguments = parse(["lab/samples.csv", "--output", "samples.nc"])
    assert arguments == Options(Path("lab/samples.csv"), output=Path("samples.nc"))
    assert arguments.figure == Path("samples_missing.png")


def test_every_flag() -> None:
    words = (
        "--id coupon --images photo,scan --curves none --scalars mass --labels resin --covariates batch,plate "
        "--group specimen --ignore note --image_size 64X96 --image_fit pad --grid_points 50 --curve_x Strain "
        "--curve_y 3 --curve_order cut --json report.json samples.csv --output samples.nc"
    )
    assert parse(words.split()) == Options(
        Path("samples.csv"),
        output=Path("samples.nc"),
        json=Path("report.json"),
        id="coupon",
        images=("photo", "scan"),
        curves=(),
        scalars=("mass",),
        labels=("resin",),
        covariates=("batch", "plate"),
        group="specimen",
        ignore=("note",),
        image_size=(64, 96),
        image_fit="pad",
        grid_points=50,
        curve_x="Strain",
        curve_y="3",
        curve_order="cut",
    )


def test_names_with_spaces_units_and_numbers() -> None:
    options = parse(["s.csv", "--output", "s.nc", "--scalars", "Yield strength (MPa), 12", "--id", "7"])
    assert options.scalars == ("Yield strength (MPa)", "12")
    assert options.id == "7"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "manifest: expected the table with a row per sample, got none; python -m inference.prepare SAMPLES.csv"),
        ("s.csv", "output: expected the file to write, got none"),
        ("s.csv --output s.zip", "output: expected a name that ends with .nc, got s.zip"),
        ("s.csv --output s.nc --json s.csv", "json: expected a file of its own"),
        ("s.csv --output s.nc --json ./s.nc", "json: expected a file of its own"),
        (
            "s.csv --output s.nc --image_size 64",
            "image_size: expected height x width, of 1 to 65536 pixels, for example 64x96, got 64",
        ),
        ("s.csv --output s.nc --image_size 0x4", "image_size: expected height x width"),
        ("s.csv --output s.nc --grid_points 1", "grid_points: expected a whole number from 2 to 1000000, got 1"),
        ("s.csv --output s.nc --grid_points many", "grid_points: expected a whole number from 2"),
        ("s.csv --output s.nc --image_fit squash", "image_fit: expected one of crop, pad, stretch, got squash"),
        (
            "s.csv --output s.nc --labels a,,b",
            "labels: expected names of columns with commas between them, or none, got 'a,,b'",
        ),
        ("s.csv --output s.nc --label a", "expected a flag that there is, got --label; did you mean --labels"),
        ("s.csv t.csv --output s.nc", "expected flags, which begin with --, got t.csv"),
        ("s.csv --output", "output: expected a value after --output, got none"),
    ],
)
def test_refused(words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").touch()
    with pytest.raises(ValueError, match=message) as error:
        parse(words.split())
    assert "\n" not in str(error.value)
