"""What of a run's graph is exported: no more directions than are identified, unnamed clusters only when asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from circle_like_fit import circle_like_fit, circle_like_summary

from causalpima.inference.command_line.flags import read_graph_file
from causalpima.inference.graphs.export import write_graph
from causalpima.inference.reporting.exported_graph import exported_graph
from causalpima.inference.result import FitResult

CLASS = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def summary(**graph: Any) -> dict[str, Any]:
    named = {"is_named": True, "identified_nodes": ["N1", "N2", "N3"], "equivalent_labellings": 1}
    found = {"cpdag": CLASS, "node_names": ["N1", "N2", "N3"], "gap_nats": 7.9}
    known = circle_like_summary()["graph"] | {"equivalence_class": found} | graph
    return circle_like_summary(identifiability=named, graph=known)


def test_the_class_is_exported_with_lines_and_the_joint_distribution() -> None:
    fit = circle_like_fit(10)
    found = exported_graph(summary(), fit.graph.outcome_names, fit.graph.log_joint - 7.0)
    np.testing.assert_array_equal(found.graph, CLASS)
    np.testing.assert_allclose(found.joint, np.exp(fit.graph.log_joint))  # type: ignore[arg-type]
    np.testing.assert_allclose(found.strength, circle_like_summary()["graph"]["edge_strength"])  # type: ignore[arg-type]
    assert found.is_named
    assert found.edge_probability is None
    assert "no hidden common cause" in found.note


def test_unnamed_clusters_are_exported_only_when_asked_for_and_marked() -> None:
    fit = circle_like_fit(10)
    with pytest.raises(ValueError, match="--as_labelled"):
        exported_graph(circle_like_summary(), fit.graph.outcome_names, fit.graph.log_joint)
    found = exported_graph(circle_like_summary(), fit.graph.outcome_names, fit.graph.log_joint, as_labelled=True)
    assert not found.is_named
    assert found.note.startswith("UNNAMED")
    np.testing.assert_array_equal(found.graph, found.graph.T)  # lines only
    assert [(edge.cause, edge.effect) for edge in found.edges()] == [(0, 1), (0, 2)]


def test_a_diverged_run_has_no_graph() -> None:
    with pytest.raises(ValueError, match="got one that diverged"):
        exported_graph({"status": "diverged"}, (), np.zeros(()))


def test_the_table_with_commas_is_a_graph_that_a_fit_can_be_given(tmp_path: Any) -> None:
    fit = circle_like_fit(10)
    found = exported_graph(summary(), fit.graph.outcome_names, fit.graph.log_joint)
    write_graph(found.as_dag(), tmp_path / "g.csv")
    edges = read_graph_file(tmp_path / "g.csv", ("N3", "N1", "N2"))
    dag = found.as_dag().graph
    assert set(edges) == {f"N{i + 1}->N{j + 1}" for i, j in np.argwhere(dag)}
    write_graph(found, tmp_path / "class.csv")
    with pytest.raises(ValueError, match="expected edges with a direction"):
        read_graph_file(tmp_path / "class.csv", ("N1", "N2", "N3"))


def test_a_fit_exports_what_its_folder_does() -> None:
    fit = circle_like_fit(10)
    result = FitResult(config={}, summary=summary(), history=[], arrays=fit, weights={}, fingerprint="")
    found = result.exported_graph()
    assert found.nodes == ("N1", "N2", "N3")
    np.testing.assert_array_equal(found.graph, CLASS)
