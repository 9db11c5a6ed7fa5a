from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.analyses.predict import PredictionOptions
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.predict import parse

NEEDED = ["runs/a", "--data", "new.nc", "--output", "out.nc"]


def test_defaults() -> None:
    arguments = parse(NEEDED)
    assert (arguments.run, arguments.data, arguments.output) == (Path("runs/a"), Path("new.nc"), Path("out.nc"))
    assert arguments.prediction == PredictionOptions()
    assert arguments.reading == ReadOptions()
    assert (arguments.device, arguments.threads, arguments.json) == ("cpu", 1, None)


def test_every_flag() -> None:
    more = "--draws 7 --seed 3 --interval 0.5 --labels a,b --sample_dim row --device cpu --threads 2 --json s.json"
    arguments = parse([*NEEDED, *more.split()])
    assert arguments.prediction == PredictionOptions(7, 3, 0.5)
    assert arguments.reading == ReadOptions(sample_dim="row", labels=("a", "b"))
    assert (arguments.threads, arguments.json) == (2, Path("s.json"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "run: expected the folder of a finished run, got none"),
        (NEEDED[:1], "data: expected the new samples, got none"),
        (NEEDED[:3], "output: expected the file to write, got none"),
        ([*NEEDED, "--draws", "0"], "draws: expected a whole number >= 1, got 0"),
        ([*NEEDED, "--seed", "-1"], "seed: expected a whole number >= 0, got -1"),
        ([*NEEDED, "--interval", "1.5"], "interval: expected a probability between 0 and 1, got 1.5"),
        ([*NEEDED, "--labels", "a,"], "labels: expected names"),
        ([*NEEDED, "--drws", "3"], "did you mean --draws"),
        ([*NEEDED[:4], "out.csv"], r"output: expected a name that ends with .nc, got out.csv"),
        ([*NEEDED[:4], "new.nc"], "output: expected a file of its own, got new.nc, which is read or written, too"),
        ([*NEEDED, "--json", "out.nc"], "json: expected a file of its own"),
    ],
)
def test_what_does_not_parse_is_one_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.nc").touch()
    with pytest.raises(ValueError, match=message) as error:
        parse(words)
    assert "\n" not in str(error.value)
