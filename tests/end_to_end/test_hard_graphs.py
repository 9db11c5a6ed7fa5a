"""Runs of the command whose graph is hard: from a file that is gone later, and searched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import TINY, contents, differences, svi

pytestmark = pytest.mark.usefixtures("without_figures")


def test_a_graph_from_a_file_is_kept_without_it(tmp_path: Path) -> None:
    file, straight, stopped = tmp_path / "graph.csv", tmp_path / "straight", tmp_path / "stopped"
    file.write_text("from/to,N1,N2\nN1,0,0\nN2,1,0\n")
    flags = [*TINY, "--model.graph", f"fixed:{file}"]
    assert svi(*flags, "--output_dir", straight).status == 0
    assert svi(*flags, "--output_dir", stopped, "--stop_after", 3).status == 0
    file.unlink()
    assert svi("--resume", stopped).status == 0
    assert differences(contents(straight), contents(stopped)) == []
    graph = json.loads((straight / "summary.json").read_text())["graph"]
    assert graph["adjacency"] == [[False, False], [True, False]]
    assert graph["edge_strength"] == [[0.0, 0.0], [1.0, 0.0]]
    assert graph["temperature"] == 0


def test_a_searched_graph_is_hard_and_its_starts_run_in_processes_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    flags = [*TINY, "--model.graph", "exact", "--restarts", 2, "--jobs", 1, "--output_dir", folder]
    refused = svi(*flags, "--restart_mode", "batched")
    assert refused.status == 2
    assert "restart_mode: expected processes, since the graph exact has tables in closed form" in refused.err
    assert svi(*flags).status == 0
    strength = json.loads((folder / "summary.json").read_text())["graph"]["edge_strength"]
    assert {value for row in strength for value in row} <= {0.0, 1.0}
