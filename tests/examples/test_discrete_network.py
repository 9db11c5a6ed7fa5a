"""Joint, graph, draws and interventions of a small network, against sums over all cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from causalpima.examples.discrete_network import DiscreteNetwork, binary_network

# a (3) -> c (2) <- b (2); axes of the table of c: b first.
NETWORK = DiscreteNetwork(
    levels={"a": ("x", "y", "z"), "c": ("no", "yes"), "b": ("low", "high")},
    parents={"a": (), "b": (), "c": ("b", "a")},
    tables={
        "a": np.array([0.2, 0.5, 0.3]),
        "b": np.array([0.6, 0.4]),
        "c": np.array([[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.4, 0.6], [0.05, 0.95]]]),
    },
)


def test_joint_is_the_product_of_the_tables() -> None:
    for a, c, b in product(range(3), range(2), range(2)):
        by_hand = NETWORK.tables["a"][a] * NETWORK.tables["b"][b] * NETWORK.tables["c"][b, a, c]
        assert NETWORK.joint[a, c, b] == pytest.approx(by_hand, rel=1e-12)
    assert NETWORK.joint.sum() == pytest.approx(1, abs=1e-12)


def test_rows_of_the_adjacency_are_causes() -> None:
    np.testing.assert_array_equal(NETWORK.adjacency, [[0, 1, 0], [0, 0, 0], [0, 1, 0]])


def test_draws_fall_into_the_cells_in_row_major_order() -> None:
    edges = np.concatenate([[0], np.cumsum(NETWORK.joint)])
    middle = NETWORK.draw((edges[:-1] + edges[1:]) / 2)
    expected = np.unravel_index(np.arange(12), (3, 2, 2))
    for codes, by_hand in zip(middle.values(), expected, strict=True):
        np.testing.assert_array_equal(codes, by_hand)


def test_an_intervened_node_listens_to_nothing_and_the_rest_stays() -> None:
    after = NETWORK.intervened("c", np.array([0.25, 0.75]))
    expected = np.einsum("a,b,c->acb", NETWORK.tables["a"], NETWORK.tables["b"], [0.25, 0.75])
    np.testing.assert_allclose(after.joint, expected)
    assert not after.adjacency.any()
    before = NETWORK.intervened("a", np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(before.joint[0], NETWORK.joint[0] / 0.2)
    np.testing.assert_array_equal(before.adjacency, NETWORK.adjacency)


def test_another_table_keeps_the_graph() -> None:
    table = NETWORK.tables["c"][..., ::-1]
    after = NETWORK.with_table("c", table)
    np.testing.assert_allclose(after.joint, NETWORK.joint[:, ::-1])
    np.testing.assert_array_equal(after.adjacency, NETWORK.adjacency)


def test_binary_networks_are_given_by_their_ones() -> None:
    network = binary_network({"a": ("0", "1"), "b": ("0", "1")}, {"a": ((), 0.3), "b": (("a",), [0.1, 0.8])})
    np.testing.assert_allclose(network.joint, [[0.7 * 0.9, 0.7 * 0.1], [0.3 * 0.2, 0.3 * 0.8]])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.array([0.5, 0.5]), r"a: expected a table \(3,\), parents first, got \(2,\)"),
        (np.array([0.5, 0.3, 0.3]), "a: expected probabilities that sum to 1"),
        (np.array([1.5, -0.3, -0.2]), "a: expected probabilities"),
    ],
)
def test_tables_that_are_none_are_named(table: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NETWORK.with_table("a", table)
