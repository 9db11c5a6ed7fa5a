"""What `python -m inference.name` is asked for, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.name import parse


def test_defaults() -> None:
    arguments = parse(["runs/a"])
    assert arguments.run == Path("runs/a")
    assert (arguments.names, arguments.output_dir, arguments.remove) == (None, None, False)
    assert (arguments.device, arguments.threads, arguments.json) == ("cpu", 1, None)


def test_every_flag() -> None:
    words = "--names n.csv --output_dir runs/b --device cpu --threads 2 --json s.json"
    arguments = parse(["runs/a", *words.split()])
    assert (arguments.names, arguments.output_dir) == (Path("n.csv"), Path("runs/b"))
    assert (arguments.threads, arguments.json) == (2, Path("s.json"))
    assert parse(["runs/a", "--remove"]).remove


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "run: expected the folder of a finished run, got none"),
        ("runs/a --remove --names n.csv", "remove: expected it without names and output_dir, got both"),
        ("runs/a --output_dir runs/b", "output_dir: expected it with names, got none"),
        ("runs/a --names n.csv --output_dir runs/a", "output_dir: expected another folder than that of the run"),
        ("runs/a --nmaes n.csv", "did you mean --names"),
        ("runs/a --threads 0", "threads: expected a whole number >= 1, got 0"),
    ],
)
def test_refused(words: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as error:
        parse(words.split())
    assert message in str(error.value)
    assert "\n" not in str(error.value)
