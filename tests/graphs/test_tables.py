"""Members of a class and conditional tables, against all DAGs and sums written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from causalpima.inference.graphs.dags import all_dags, cpdag, is_acyclic
from causalpima.inference.graphs.scores import conditional_table, joint_of, member_of, parents_of


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4])
def test_a_member_is_in_the_class_of_every_dag(n_nodes: int) -> None:
    for dag in all_dags(n_nodes):
        found = member_of(cpdag(dag))
        assert is_acyclic(found)
        np.testing.assert_array_equal(cpdag(found), cpdag(dag))


def test_arrows_are_kept_and_a_class_without_a_dag_is_refused() -> None:
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(member_of(chain), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    with pytest.raises(ValueError, match="expected a class that has a DAG"):
        member_of(square)


@pytest.mark.parametrize(("node", "parents"), [(0, (1, 2)), (1, ()), (1, (0, 2)), (2, (0,))])
def test_tables_are_shares_of_the_joint_distribution(node: int, parents: tuple[int, ...]) -> None:
    joint = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 3, 2)
    table = conditional_table(joint, node, parents)
    for given in product(*(range(joint.shape[parent]) for parent in parents)):
        index: list[slice | int] = [slice(None)] * 3
        for parent, outcome in zip(parents, given, strict=True):
            index[parent] = outcome
        kept = np.expand_dims(joint[tuple(index)], list(parents))
        expected = kept.sum(tuple(axis for axis in range(3) if axis != node))
        np.testing.assert_allclose(table[given], expected / expected.sum())


def test_what_has_no_mass_is_uniform() -> None:
    joint = np.array([[0.25, 0.75], [0.0, 0.0]])
    np.testing.assert_allclose(conditional_table(joint, 1, (0,)), [[0.25, 0.75], [0.5, 0.5]])


def test_a_joint_distribution_of_a_graph_is_found_again() -> None:
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    for dag in all_dags(3):
        along = joint_of(dag, joint)
        np.testing.assert_allclose(along.sum(), 1.0)
        np.testing.assert_allclose(joint_of(dag, along), along)
        for node in range(3):
            parents = parents_of(dag, node)
            np.testing.assert_allclose(
                conditional_table(along, node, parents), conditional_table(joint, node, parents), atol=1e-12
            )
    full = np.triu(np.ones((3, 3), dtype=int), 1)
    np.testing.assert_allclose(joint_of(full, joint), joint)
    with pytest.raises(ValueError, match="without cycles"):
        joint_of(np.ones((3, 3), dtype=int) - np.eye(3, dtype=int), joint)
