"""Arguments of python -m inference.explore, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from causalpima.inference.explore import main, parse


def test_defaults() -> None:
    arguments = parse(["--dataset", "circles"])
    assert arguments.settings == {"dataset": "circles"}
    assert (arguments.starts, arguments.pairs, arguments.max_cells, arguments.epochs) == (3, 3, None, None)
    assert (arguments.picture, arguments.json) == (Path("circles-cells.png"), None)


def test_every_flag() -> None:
    more = "--max_cells 9 --starts 2 --pairs 1 --epochs 4 --seed 3 --figure f.png --json t.json --modalities a,b "
    more += "--labels l --groups g --covariates c --kinds a=curve --sample_dim row --in_memory no --threads 2 --quiet"
    arguments = parse(["folder/new.nc", *more.split()])
    assert arguments.settings == {
        "data": "folder/new.nc",
        "modalities": "a,b",
        "labels": "l",
        "groups": "g",
        "covariates": "c",
        "kinds": "a=curve",
        "sample_dim": "row",
        "in_memory": "no",
    }
    assert (arguments.starts, arguments.pairs, arguments.max_cells, arguments.epochs) == (2, 1, 9, 4)
    assert (arguments.seed, arguments.threads, arguments.quiet) == (3, 2, True)
    assert parse(["folder/new.nc"]).picture == Path("new-cells.png")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "data: expected either a file of samples or --dataset NAME, got none"),
        (["a.nc", "--dataset", "circles"], "data: expected either .*, got both"),
        (["--dataset", "circls"], "dataset: expected one of"),
        (["a.nc", "--max_cells", "1"], "max_cells: expected a whole number >= 2, got 1"),
        (["a.nc", "--starts", "0"], "starts: expected a whole number >= 1, got 0"),
        (["a.nc", "--figure", "a.pdf"], "figure: expected a name that ends with .png"),
        (["--data", "a.nc"], "^expected a flag that there is, got --data; --help lists all$"),
        (["a.nc", "--json", "a-cells.png"], "json: expected a file of its own"),
        (["a.nc", "--start", "2"], "did you mean --starts"),
    ],
)
def test_what_does_not_parse_is_one_line(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        parse(words)
    assert "\n" not in str(error.value)


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Two well separated groups of curves."""
    rng = np.random.default_rng(0)
    level = np.where(rng.random(96) < 0.4, 2.0, -2.0)[:, None]
    path = tmp_path / "curves.npz"
    np.savez(path, curve=level * np.linspace(0.5, 1.0, 12) + 0.1 * rng.normal(size=(96, 12)))
    return path


@pytest.mark.float32
def test_the_command_prints_writes_and_draws(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure, table = tmp_path / "f.png", tmp_path / "t.json"
    words = f"{samples} --max_cells 3 --starts 2 --pairs 1 --epochs 3 --figure {figure} --json {table}"
    assert main(words.split()) == 0
    shown = capsys.readouterr().out
    assert "halves" in shown
    assert str(figure) in shown
    assert figure.read_bytes().startswith(b"\x89PNG")
    found = json.loads(table.read_text())
    assert [each["n_cells"] for each in found["sizes"]] == [2, 3]
    assert found["n_samples"] == 96


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--max_cells 40", "max_cells: expected at most an eighth of the samples, got 40 for 96 samples"),
        ("--figure /no/such/folder/f.png", "figure: expected a file in a folder that you may write to"),
        ("--modalities spectrum", "spectrum"),
    ],
)
def test_wrong_input_is_one_line_and_no_file(
    more: str, message: str, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main([str(samples), "--json", str(tmp_path / "t.json"), "--figure", str(tmp_path / "f.png"), *more.split()])
        == 2
    )
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert list(tmp_path.iterdir()) == [samples]
