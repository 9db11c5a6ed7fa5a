"""Fits that fail: exit status 3, the folder kept, and nothing in it that looks healthy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import TINY, Outcome, contents, differences, svi

pytestmark = pytest.mark.usefixtures("without_figures")


def read_summary(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "summary.json").read_text())
    return found


@pytest.mark.parametrize(("flags", "epochs"), [("--training.learning_rate 1e20", 0), ("--graph.learning_rate 1e38", 2)])
def test_a_diverged_fit(tmp_path: Path, flags: str, epochs: int) -> None:
    folder = tmp_path / "run"
    outcome = svi(*TINY, *flags.split(), "--output_dir", folder, "--json", tmp_path / "copy.json")
    assert outcome.status == 3
    assert outcome.out.startswith("Verdict    failed\n           - The fit diverged: the ")
    assert outcome.err == ""
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoint",
        "config.yaml",
        "metrics.jsonl",
        "summary.json",
    ]
    told = read_summary(folder)
    assert told == json.loads((tmp_path / "copy.json").read_text())
    assert (told["status"], told["epochs"]) == ("diverged", epochs)
    assert not {"objective", "clusters", "graph", "evaluation"} & set(told)
    assert f"epoch-{epochs:06d}" in {path.name for path in (folder / "checkpoint").iterdir()}
    assert not (folder / "checkpoint" / "final").exists()


def test_no_figure_of_an_earlier_run_stays_beside_a_diverged_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert svi(*TINY, "--output_dir", folder).status == 0
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures" / "graph.png").touch()
    assert svi(*TINY, "--training.learning_rate", 1e20, "--output_dir", folder, "--force").status == 3
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoint",
        "config.yaml",
        "metrics.jsonl",
        "summary.json",
    ]


def collapsed(folder: Path, patch: pytest.MonkeyPatch) -> Outcome:
    patch.setattr("causalpima.inference.clusters.clustering.FEWEST_SAMPLES", 10**6)
    return svi(*TINY, "--output_dir", folder)


def test_a_collapsed_fit_leaves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = collapsed(tmp_path / "run", monkeypatch)
    assert outcome.status == 3
    assert outcome.out.startswith("Verdict    failed\n           - The fit collapsed: 0 of 4 clusters ")
    told = read_summary(tmp_path / "run")
    assert told["status"] == "collapsed"
    assert {"objective", "clusters", "graph", "evaluation"} <= set(told)
    names = {"checkpoint", "config.yaml", "metrics.jsonl", "posterior.nc", "report.html", "summary.json"}
    assert names <= {path.name for path in (tmp_path / "run").iterdir()}


@pytest.mark.parametrize("kind", ["ok", "collapsed", "diverged"])
def test_a_complete_run_is_shown_again_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = tmp_path / "run"
    if kind == "collapsed":
        first = collapsed(folder, monkeypatch)
    else:
        first = svi(*TINY, "--output_dir", folder, *(["--training.learning_rate", 1e20] if kind == "diverged" else []))
    before, times = contents(folder), {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again = svi("--resume", folder, "--json", tmp_path / "copy.json")
    assert again.status == first.status
    assert again.out == f"{folder} is complete; nothing was done\n{first.out}"
    assert differences(contents(folder), before) == []
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == times
    told = {name: entry for name, entry in read_summary(folder).items() if name != "checksums"}
    assert json.loads((tmp_path / "copy.json").read_text()) == told
