"""A run, then its page anew and its graph for other programs; bad input is one line and leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import TINY, svi

from causalpima.inference.export import main as export
from causalpima.inference.graphs.export import read_graph
from causalpima.inference.report import main as report


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "c"
    assert svi(*TINY, "--output_dir", folder).status in (0, 3)
    return folder


def test_the_page_is_written_again_as_it_was(run: Path, tmp_path: Path) -> None:
    before = (run / "report.html").read_bytes()
    assert report([str(run), "--output", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == before
    (run / "config.yaml").rename(run / "kept.yaml")  # nothing but the results of the run is needed
    (run / "kept.yaml").rename(run / "config.yaml")
    assert report([str(run)]) == 0
    assert (run / "report.html").read_bytes() == before


def test_results_of_later_commands_come_in(run: Path, tmp_path: Path) -> None:
    line = {"key": "k", "name": "edges of shuffled data", "found": "0 of 20", "verdict": "passes", "advice": ""}
    (run / "check.json").write_text(json.dumps({"lines": [line]}))
    assert report([str(run), "--output", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "edges of shuffled data" in text
    assert "Checks and diagnostics" in text
    assert "https://" not in text
    assert "<script" not in text
    (run / "check.json").unlink()


def test_bad_input_is_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases: tuple[tuple[Callable[[list[str]], int], list[str], str], ...] = (
        (report, [str(tmp_path)], "run folder"),
        (report, [str(run), "--output", str(tmp_path / "none" / "x.html")], "output: expected a file in a folder"),
        (report, [], "run: expected the folder of a finished run"),
        (export, [str(run), "--output", str(tmp_path / "g.txt")], "expected a file that ends in"),
        (export, [str(run), "--output", str(tmp_path / "g.dot")], "--as_labelled"),
        (export, [str(run)], "output: expected the file to write, got none"),
    )
    for command, words, message in cases:
        assert command(words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "edges.csv", "graphml", "dot", "bif", "json"])
def test_the_graph_is_exported_and_marked(run: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"g.{ending}"
    assert export([str(run), "--output", str(path), "--as_labelled"]) == 0
    found, summary = read_graph(path), json.loads((run / "summary.json").read_text())
    assert found.nodes == tuple(summary["nodes"])
    if ending == "bif":
        assert "UNNAMED" in path.read_text()
        np.testing.assert_allclose(found.joint.sum(), 1.0)  # type: ignore[union-attr]
    else:
        assert not found.is_named
        np.testing.assert_array_equal(found.graph, found.graph.T)
