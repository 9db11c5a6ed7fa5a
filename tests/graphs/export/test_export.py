"""Graphs to other programs and back: nothing is lost, and every program reads the same directions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from causalpima.inference.graphs.export import (
    ENDINGS,
    from_causal_learn,
    from_networkx,
    from_pgmpy,
    read_graph,
    to_causal_learn,
    to_networkx,
    to_pgmpy,
    write_graph,
)
from causalpima.inference.graphs.formats import ORIENTATION, ExportedGraph, bif, bif_names, dot, graphml
from causalpima.inference.graphs.scores import joint_of

NODES = ('the "hue", of light', "Härte µ", "size\\shape", "b")
OUTCOMES = (("red, dark", "blue"), ("0", "1", "2"), ('a"b', "ö"), ("x", "y"))
COLLIDER = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
LINES = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])


def exported(graph: np.ndarray = COLLIDER, nodes: tuple[str, ...] = NODES) -> ExportedGraph:
    rng = np.random.default_rng(0)
    probability = rng.uniform(0.0, 0.5, (4, 4))
    np.fill_diagonal(probability, 0.0)
    joint = rng.dirichlet(np.ones(24)).reshape(2, 3, 2, 2)
    strength = rng.uniform(size=(4, 4)) * (1 - np.eye(4))
    note = 'the "class", of runs'
    return ExportedGraph(nodes, OUTCOMES, graph, joint, probability, probability / 2, strength, note)


@pytest.mark.parametrize("graph", [COLLIDER, LINES, 0 * LINES], ids=["arrows", "lines", "empty"])
@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending != ".bif"])
def test_files_are_read_as_they_were_written(ending: str, graph: np.ndarray, tmp_path: Path) -> None:
    sent = replace(exported(graph), is_named=False)
    write_graph(sent, tmp_path / f"g{ending}")
    back = read_graph(tmp_path / f"g{ending}")
    assert back.nodes == NODES
    np.testing.assert_array_equal(back.graph, graph)
    assert not back.is_named
    if "csv" not in ending:
        assert (back.outcomes, back.note) == (OUTCOMES, sent.note)
    for name in ("edge_probability", "compelled_probability", "strength"):
        if ending in (".edges.csv", ".json"):
            np.testing.assert_array_equal(getattr(back, name), getattr(sent, name))
    if ending == ".json":
        np.testing.assert_array_equal(back.joint, sent.joint)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_orientation_is_stated(ending: str, tmp_path: Path) -> None:
    write_graph(exported(), tmp_path / f"g{ending}")
    text = (tmp_path / f"g{ending}").read_text(encoding="utf-8").replace("&gt;", ">")
    if ending == ".edges.csv":
        assert text.startswith("from,to,edge,directed,")
    else:
        assert ("row -> column" if ending == ".csv" else ORIENTATION) in text


def test_networkx_holds_lines_both_ways_with_tables_and_numbers() -> None:
    sent = exported(LINES)
    found = to_networkx(sent)
    assert set(found.edges) == {(NODES[i], NODES[j]) for i, j in np.argwhere(LINES)}
    assert not any(directed for *_, directed in found.edges(data="directed"))
    edge = found.edges[NODES[0], NODES[1]]
    assert edge["probability"] == sent.edge_probability[0, 1]  # type: ignore[index]
    np.testing.assert_allclose(edge["adjacency_probability"], sent.edge_probability[[0, 1], [1, 0]].sum())  # type: ignore[index]
    node = found.nodes[NODES[1]]
    np.testing.assert_allclose(np.sum(node["table"], -1), 1.0)
    assert node["outcomes"] == list(OUTCOMES[1])
    assert found.graph["orientation"] == ORIENTATION
    back = from_networkx(found)
    assert (back.nodes, back.outcomes, back.note) == (NODES, OUTCOMES, sent.note)
    np.testing.assert_array_equal(back.graph, LINES)


def test_networkx_reads_graphml_of_arrows(tmp_path: Path) -> None:
    write_graph(exported(), tmp_path / "g.graphml")
    found = nx.relabel_nodes(nx.read_graphml(tmp_path / "g.graphml"), lambda node: NODES[int(node[1:])])
    assert set(found.edges) == {(NODES[i], NODES[j]) for i, j in np.argwhere(COLLIDER)}
    assert [label for _, label in found.nodes(data="label")] == list(NODES)
    assert found.edges[NODES[0], NODES[2]]["probability"] == exported().edge_probability[0, 2]  # type: ignore[index]


def test_lines_are_undirected_in_graphml_and_without_heads_in_dot() -> None:
    assert graphml(exported(LINES)).count('directed="false"') == dot(exported(LINES)).count('dir="none"') == 2
    assert 'directed="false"' not in graphml(exported())
    assert "dir=" not in dot(exported())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pyparsing, inside pydot
def test_pydot_reads_dot() -> None:
    pydot = pytest.importorskip("pydot")
    (found,) = pydot.graph_from_dot_data(dot(exported()))
    ends = {(edge.get_source(), edge.get_destination()) for edge in found.get_edges()}
    assert ends == {("n0", "n2"), ("n1", "n2"), ("n2", "n3")}
    labels = [node.get("label") for node in found.get_nodes() if node.get_name().startswith("n")]
    assert r'"size\\shape"' in labels
    assert r'"the \"hue\", of light"' in labels


def test_causal_learn_has_the_same_directions_and_lines() -> None:
    pytest.importorskip("causallearn")
    for graph in (COLLIDER, LINES):
        found = to_causal_learn(exported(graph))
        names = found.get_node_names()
        assert names == list(NODES)
        back = from_causal_learn(found)
        np.testing.assert_array_equal(back.graph, graph)
    nodes = found.get_nodes()
    found.add_directed_edge(nodes[0], nodes[3])
    assert from_causal_learn(found).graph[0, 3] == 1
    assert found.is_parent_of(nodes[0], nodes[3])


def test_pgmpy_answers_as_the_joint_distribution_does() -> None:
    pytest.importorskip("pgmpy")
    from pgmpy.inference import VariableElimination

    sent = exported()
    model = to_pgmpy(sent)
    assert model.check_model()
    along = joint_of(COLLIDER, sent.joint)  # type: ignore[arg-type]
    answer = VariableElimination(model).query(
        [NODES[2]], evidence={NODES[0]: "blue", NODES[3]: "x"}, show_progress=False
    )
    expected = along[1, :, :, 0].sum(0)
    np.testing.assert_allclose(answer.values, expected / expected.sum())
    back = from_pgmpy(model)
    order = [back.nodes.index(name) for name in NODES]
    np.testing.assert_array_equal(back.graph[np.ix_(order, order)], COLLIDER)
    np.testing.assert_allclose(np.transpose(back.joint, order), along)  # type: ignore[arg-type]


def test_bif_is_read_back_with_its_tables(tmp_path: Path) -> None:
    sent = exported()
    write_graph(sent, tmp_path / "g.bif")
    back = read_graph(tmp_path / "g.bif")
    assert back.nodes == (NODES[0].replace('"', "'"), *NODES[1:])
    np.testing.assert_array_equal(back.graph, COLLIDER)
    np.testing.assert_allclose(back.joint, joint_of(COLLIDER, sent.joint), atol=1e-10)  # type: ignore[arg-type]


def test_pgmpy_reads_bif(tmp_path: Path) -> None:
    pytest.importorskip("pgmpy")
    from pgmpy.readwrite import BIFReader

    sent = exported(nodes=("hue", "hard ness", "size", "b"))
    model = BIFReader(string=bif(sent)).get_model()
    back = from_pgmpy(model)
    names = bif_names(sent.nodes)
    order = [back.nodes.index(name) for name in names]
    np.testing.assert_array_equal(back.graph[np.ix_(order, order)], COLLIDER)
    np.testing.assert_allclose(np.transpose(back.joint, order), joint_of(COLLIDER, sent.joint), atol=1e-6)  # type: ignore[arg-type]


def test_one_graph_of_a_class_stands_for_it_and_says_so() -> None:
    one = exported(LINES).as_dag()
    assert not (one.graph & one.graph.T).any()
    assert "lines have arbitrary arrows" in one.note
    assert exported().as_dag().note == exported().note


def test_what_a_format_needs_is_asked_for(tmp_path: Path) -> None:
    bare = replace(exported(), joint=None)
    with pytest.raises(ValueError, match="bif: expected a graph with p"):
        write_graph(bare, tmp_path / "g.bif")
    with pytest.raises(ValueError, match="expected a file that ends in"):
        write_graph(bare, tmp_path / "g.txt")
    with pytest.raises(ValueError, match="different names"):
        replace(bare, nodes=("a", "a", "b", "c"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "g.csv").write_text("a,b\nc,1\n")
    with pytest.raises(ValueError, match="square table"):
        read_graph(tmp_path / "g.csv")


def test_bif_names_are_words_that_differ() -> None:
    found = bif_names(["a b", "a_b", "1", "ö", "plain"])
    assert len(set(found)) == 5
    assert all(name.isascii() and name.isidentifier() for name in found)
    assert found[-1] == "plain"
