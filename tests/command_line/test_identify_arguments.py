"""Arguments of python -m inference.identify, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from causalpima.inference.command_line.flags import DATASETS
from causalpima.inference.identify import main, parse

MASKED = ["--nodes", "2,2,2", "--mask", "a=N1,N2", "b=N2,N3"]


def test_defaults() -> None:
    arguments = parse(["--nodes", "2,2"])
    assert arguments.json is None
    assert arguments.side_information() == {
        "nodes": {"N1": 2, "N2": 2},
        "mask": {},
        "labels": (),
        "tiers": (),
        "environments": (),
        "independent": False,
    }


def test_every_flag() -> None:
    more = "--labels N1,N2 N3 --tiers N1 N2,N3 --environments do(N1) soft(N2) --independent --json r.json"
    found = parse([*MASKED, *more.split()])
    assert found.json == Path("r.json")
    assert found.side_information()["mask"] == {"a": ("N1", "N2"), "b": ("N2", "N3")}
    assert found.side_information()["labels"] == ("N1", "N2", "N3")
    assert found.side_information()["tiers"] == (("N1",), ("N2", "N3"))
    assert found.side_information()["environments"] == ("do(N1)", "soft(N2)")
    assert found.side_information()["independent"]
    assert parse(["--nodes", "a=2,b=3", "--names"]).side_information()["labels"] == ("a", "b")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--independent_nodes"], True),
        (["--independent_nodes", "true", "--labels", "N1"], True),
        (["--independent_nodes=false"], False),
        (["--independent_nodes", "--labels", "N1"], True),
    ],
)
def test_independence_has_the_name_that_svi_gives_it(words: list[str], expected: bool) -> None:
    assert parse(["--nodes", "2,2", *words]).side_information()["independent"] is expected


def test_nodes_and_mask_of_a_named_data_set() -> None:
    views = DATASETS["circles_views"].config
    found = parse(["--dataset", "circles_views"]).side_information()
    assert (found["nodes"], found["mask"]) == (dict(views.nodes), dict(views.mask))
    named = parse(["--dataset", "circles_views", "--names"]).side_information()
    assert named["labels"] == tuple(views.nodes)
    other = parse(["--dataset", "circles", "--nodes", "a=2,b=3", "--mask", "x=a", "y=a,b"]).side_information()
    assert (other["nodes"], other["mask"]) == ({"a": 2, "b": 3}, {"x": ("a",), "y": ("a", "b")})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nodes", "2,2", "--read_outs", "a=moments"], "read_outs: .*; python -m inference.svi --read_outs searches"),
        (["--nodes", "2,2", "--observe=N1=x"], "observe: expected nodes with labels as --labels NODE"),
        (["--nodes", "2,2", "--independent_nodes=maybe"], "independent_nodes: expected true or false, got 'maybe'"),
        (["--nodes", "2,2", "--mask", "a=N1,b=N2"], "mask: expected modalities separated by spaces, got commas"),
        (["--dataset", "circels"], "dataset: expected one of"),
        ([], "nodes: expected outcomes per node"),
        (["--nodes", "2,1"], "nodes: expected whole numbers >= 2"),
        (["--nodes", "2,2", "--mask", "a"], "mask: expected MODALITY=NODE,NODE"),
        (["--nodes", "2,2", "--labels", "N1,"], "labels: expected names of nodes"),
        (["--nodes", "2,2", "--tiers", ",N1"], "tiers: expected names of nodes"),
        (["--nodes", "2,2", "--labls", "N1"], "did you mean --labels"),
    ],
)
def test_what_does_not_parse_is_one_line(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        parse(words)
    assert "\n" not in str(error.value)


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    assert main([*MASKED, "--json", str(file)]) == 0
    assert "at least 4 labellings fit equally well" in capsys.readouterr().out
    written = json.loads(file.read_text())
    assert (written["equivalent_labellings"], written["identified_nodes"]) == (4, ["N2"])
    assert written["suggestions"][0]["equivalent_labellings"] == 1


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "identifiability.md"
    shown = page.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert main(MASKED) == 0
    assert capsys.readouterr().out.startswith(shown)


@pytest.mark.parametrize("words", [["--nodes", "2,2", "--mask", "a=N1"], ["--nodes", "2,2", "--labels", "N7"]])
def test_wrong_input_is_one_line_and_no_file(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--json", str(tmp_path / "report.json")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
