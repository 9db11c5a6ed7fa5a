"""The command line of `inference.query`."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.query import parse


def test_flags_may_be_repeated(tmp_path: Path) -> None:
    output, json = tmp_path / "draws.nc", tmp_path / "answer.json"
    words = ["run", "--do", "A=1", "--do", "B=x", "--given", "C=0", "--draws", "50", "--seed", "3"]
    found = parse([*words, "--output", str(output), "--json", str(json), "--counterfactual", "S7"])
    assert (found.run, found.do, found.given) == (Path("run"), ("A=1", "B=x"), ("C=0",))
    assert (found.draws, found.seed, found.counterfactual) == (50, 3, "S7")
    assert found.query.sampled
    assert (found.output, found.json, found.figures) == (output, json, None)
    assert not parse(["run", "--do", "A=1"]).query.sampled


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "run: expected the folder of a finished run, got none"),
        (["run", "--output", "draws.csv"], "output: expected a name that ends with .nc"),
        (["run", "--json", "a.nc", "--output", "a.nc"], "json: expected a file of its own"),
        (["run", "--json", "missing/a.json"], "json: expected a file in a folder that you may write to"),
        (["run", "--draws", "0"], "draws"),
        (["run", "--doo", "A=1"], "doo"),
    ],
)
def test_wrong_command_lines_are_one_line(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        parse(words)
    assert "\n" not in str(refusal.value)
