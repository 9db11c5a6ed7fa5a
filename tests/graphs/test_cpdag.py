"""Equivalence classes against enumeration, d-separation, and other libraries."""

from __future__ import annotations

from itertools import chain, combinations

import networkx as nx
import numpy as np
import pytest

from causalpima.inference.graphs.dags import all_dags, class_codes, compelled, cpdag, is_acyclic, v_structures


def graph(n_nodes: int, *edges: tuple[int, int]) -> np.ndarray:
    found = np.zeros((n_nodes, n_nodes), dtype=np.int64)
    for cause, effect in edges:
        found[cause, effect] = 1
    return found


def random_dag(rng: np.random.Generator, n_nodes: int) -> np.ndarray:
    order = rng.permutation(n_nodes)
    upper = np.triu(rng.random((n_nodes, n_nodes)) < rng.uniform(0.2, 0.8), 1).astype(np.int64)
    return upper[np.ix_(order, order)]


def separations(dag: np.ndarray) -> frozenset[tuple[int, int, tuple[int, ...]]]:
    """All d-separations of two nodes given a set of others."""
    drawn, nodes = nx.DiGraph(dag), range(len(dag))
    triples = (
        (i, j, given)
        for i, j in combinations(nodes, 2)
        for given in chain.from_iterable(
            combinations([k for k in nodes if k not in (i, j)], size) for size in range(len(dag) - 1)
        )
    )
    return frozenset((i, j, given) for i, j, given in triples if nx.is_d_separator(drawn, {i}, {j}, set(given)))


@pytest.mark.parametrize(
    ("n_nodes", "n_graphs", "n_classes"), [(1, 1, 1), (2, 3, 2), (3, 25, 11), (4, 543, 185), (5, 29281, 8782)]
)
def test_numbers_of_graphs_and_classes_are_those_of_the_literature(n_nodes: int, n_graphs: int, n_classes: int) -> None:
    dags = all_dags(n_nodes)
    assert len(dags) == n_graphs == len(np.unique(dags, axis=0))
    assert class_codes(dags).max() + 1 == n_classes
    assert not dags[0].any()


def test_more_nodes_than_can_be_listed_are_refused() -> None:
    with pytest.raises(ValueError, match="n_nodes: expected 1 to 5, got 6"):
        all_dags(6)


@pytest.mark.parametrize("n_nodes", [3, 4])
def test_one_class_is_one_set_of_d_separations(n_nodes: int) -> None:
    dags = all_dags(n_nodes)
    by_separation = {key: code for code, key in enumerate(dict.fromkeys(map(separations, dags)))}
    pairs = {(by_separation[separations(dag)], code) for dag, code in zip(dags, class_codes(dags), strict=True)}
    assert len(pairs) == len(by_separation) == len({code for _, code in pairs})


@pytest.mark.parametrize("n_nodes", [2, 3, 4])
def test_cpdag_is_the_union_of_the_class(n_nodes: int) -> None:
    dags = all_dags(n_nodes)
    codes = class_codes(dags)
    for code in range(codes.max() + 1):
        members = dags[codes == code]
        for member in members:
            np.testing.assert_array_equal(cpdag(member), members.any(0))


def test_a_direction_two_edges_from_a_collider_is_compelled() -> None:
    #  0 -> 2 <- 1,  2 -> 3 -> 4: rule 1, twice
    dag = graph(5, (0, 2), (1, 2), (2, 3), (3, 4))
    np.testing.assert_array_equal(cpdag(dag), dag)
    #  0 -> 1 -> 2: nothing is
    np.testing.assert_array_equal(cpdag(graph(3, (0, 1), (1, 2))), graph(3, (0, 1), (1, 0), (1, 2), (2, 1)))


def test_v_structures_are_told_from_shielded_colliders() -> None:
    assert np.argwhere(v_structures(graph(3, (0, 2), (1, 2)))).tolist() == [[0, 2, 1], [1, 2, 0]]
    assert not v_structures(graph(3, (0, 2), (1, 2), (0, 1))).any()


def test_cycles_are_found_as_networkx_finds_them() -> None:
    generator = np.random.default_rng(0)
    graphs = generator.random((300, 6, 6)) < generator.random((300, 1, 1)) / 2
    known = [nx.is_directed_acyclic_graph(nx.from_numpy_array(edges, create_using=nx.DiGraph)) for edges in graphs]
    assert 50 < sum(known) < 250
    np.testing.assert_array_equal(is_acyclic(graphs), known)


def test_cycles_are_found_in_graphs_of_many_nodes() -> None:
    edges = np.triu(np.ones((300, 300), dtype=bool), 1)  # every node has more paths to the last than a byte can count
    assert is_acyclic(edges)
    edges[-1, 0] = True
    assert not is_acyclic(edges)
    assert is_acyclic(np.zeros((3000, 3000)))


def test_cycles_are_refused() -> None:
    assert not is_acyclic(graph(3, (0, 1), (1, 2), (2, 0)))
    with pytest.raises(ValueError, match="dag: expected a graph without cycles"):
        cpdag(graph(3, (0, 1), (1, 2), (2, 0)))
    with pytest.raises(ValueError, match=r"dag: expected shape \[node, node\]"):
        cpdag(np.zeros((2, 3)))


def test_large_graphs_agree_with_causal_learn() -> None:
    pytest.importorskip("causallearn")
    from causallearn.graph.Dag import Dag
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.utils.DAG2CPDAG import dag2cpdag

    rng = np.random.default_rng(0)
    for _ in range(50):
        dag = random_dag(rng, int(rng.integers(5, 10)))
        nodes = [GraphNode(f"{index}") for index in range(len(dag))]
        other = Dag(nodes)
        for cause, effect in np.argwhere(dag):
            other.add_directed_edge(nodes[cause], nodes[effect])
        marks = dag2cpdag(other).graph  # [j, i] = 1 and [i, j] = -1: i -> j; -1 both ways: i - j
        np.testing.assert_array_equal(cpdag(dag), marks == -1)
        assert compelled(cpdag(dag)).sum() == ((marks == -1) & (marks.T == 1)).sum()
