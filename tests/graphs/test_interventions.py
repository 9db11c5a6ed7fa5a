"""Interventions against the product written out, sampled programs, conditioning, and pgmpy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from causalpima.inference.graphs.dags import all_dags
from causalpima.inference.graphs.interventions import (
    causal_order,
    conditioned,
    descendants,
    factorised,
    intervened,
    node_marginals,
    parent_support,
)
from causalpima.inference.graphs.scores import shares_given

SIZES = (2, 3, 2)
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
FORK = np.array([[0, 0, 0], [1, 0, 1], [0, 0, 0]])
COLLIDER = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])


def random_tables(dag: np.ndarray, sizes: tuple[int, ...], rng: np.random.Generator) -> dict[int, np.ndarray]:
    """p(N_k | parents in ascending order), `[*parents, C_k]`."""
    return {
        k: rng.dirichlet(np.ones(size), size=tuple(sizes[j] for j in np.flatnonzero(dag[:, k])))
        for k, size in enumerate(sizes)
    }


def by_hand(dag: np.ndarray, tables: dict[int, np.ndarray], sizes: tuple[int, ...], do: dict[int, int]) -> np.ndarray:
    """The truncated product, cell by cell."""
    joint = np.zeros(sizes)
    for cell in product(*map(range, sizes)):
        mass = 1.0
        for k in range(len(sizes)):
            row = tuple(cell[j] for j in np.flatnonzero(dag[:, k]))
            mass *= float(cell[k] == do[k]) if k in do else float(tables[k][(*row, cell[k])])
        joint[cell] = mass
    return joint


@pytest.mark.parametrize("do", [{}, {0: 1}, {1: 2}, {2: 0}, {0: 1, 2: 0}, {0: 0, 1: 1, 2: 1}])
def test_every_graph_against_the_product_written_out(do: dict[int, int]) -> None:
    rng = np.random.default_rng(1)
    for dag in all_dags(3):
        tables = random_tables(dag, SIZES, rng)
        joint = by_hand(dag, tables, SIZES, {})
        np.testing.assert_allclose(intervened(joint, dag, do), by_hand(dag, tables, SIZES, do), atol=1e-12)


def test_leading_dimensions_are_further_joints() -> None:
    joints = np.random.default_rng(2).dirichlet(np.ones(12), size=(4, 5)).reshape(4, 5, *SIZES)
    together = conditioned(intervened(joints, CHAIN, {1: 2}), 3, {2: 1})
    for index in np.ndindex(4, 5):
        alone = conditioned(intervened(joints[index], CHAIN, {1: 2}), 3, {2: 1})
        np.testing.assert_allclose(together[index], alone)


def test_do_is_conditioning_for_roots_and_for_no_other_node() -> None:
    rng = np.random.default_rng(3)
    for dag in all_dags(3):
        joint = by_hand(dag, random_tables(dag, SIZES, rng), SIZES, {})
        for node in range(3):
            same = np.allclose(intervened(joint, dag, {node: 1}), conditioned(joint, 3, {node: 1}), atol=1e-6)
            assert same == (not dag[:, node].any()), (dag, node)


def test_what_no_path_leads_to_stays_as_it_is() -> None:
    joint = by_hand(CHAIN, random_tables(CHAIN, SIZES, np.random.default_rng(4)), SIZES, {})
    marginals, before = node_marginals(intervened(joint, CHAIN, {1: 0}), 3), node_marginals(joint, 3)
    np.testing.assert_allclose(marginals[0], before[0])
    assert np.abs(marginals[2] - before[2]).max() > 0.01
    assert descendants(CHAIN, [1]) == {2}
    assert descendants(COLLIDER, [0, 2]) == {1}
    assert causal_order(FORK) == [1, 0, 2]


def test_equivalent_graphs_agree_on_what_is_seen_and_differ_on_what_is_done() -> None:
    joint = by_hand(CHAIN, random_tables(CHAIN, SIZES, np.random.default_rng(5)), SIZES, {})
    np.testing.assert_allclose(factorised(joint, FORK), joint, atol=1e-12)
    assert np.abs(intervened(joint, FORK, {0: 1}) - intervened(joint, CHAIN, {0: 1})).max() > 0.01


def test_a_condition_on_an_effect_selects_among_outcomes() -> None:
    """Given a common effect, two causes depend on each other although the intervention made one of them a constant."""
    joint = by_hand(COLLIDER, random_tables(COLLIDER, SIZES, np.random.default_rng(6)), SIZES, {})
    done = intervened(joint, COLLIDER, {0: 1})
    np.testing.assert_allclose(done.sum((0, 1)), joint.sum((0, 1)))
    after = conditioned(done, 3, {1: 2})
    by_bayes = done[1, 2] / done[1, 2].sum()
    np.testing.assert_allclose(after.sum((0, 1)), by_bayes)
    assert np.abs(by_bayes - joint.sum((0, 1))).max() > 0.01


def test_conditions_without_mass_are_refused_and_tables_without_mass_are_nan() -> None:
    joint = np.zeros((2, 2, 2))
    joint[0, 0], joint[1, 1] = [0.3, 0.2], [0.1, 0.4]  # N1 and N2 are the same
    with pytest.raises(ValueError, match=r"given: expected a condition that can come about.* probability 0"):
        conditioned(joint, 3, {0: 0, 1: 1})
    both = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    assert np.isnan(shares_given(joint, 3, 2, [0, 1], np.nan)[0, 1]).all()
    done = intervened(joint, both, {0: 1})
    assert np.isnan(done[1, 0]).all(), "N1 = 1 with N2 = 0 was never seen"
    np.testing.assert_allclose(done[1, 1], [0.1, 0.4])
    assert (done[0] == 0).all(), "what cannot come about is nothing, not unknown"
    assert parent_support(joint, both, {0: 1}) == 0.0
    assert parent_support(joint, CHAIN, {0: 1}) == 0.5


@pytest.mark.parametrize(
    ("dag", "do", "message"),
    [
        (CHAIN + CHAIN.T, {0: 1}, "dag: expected a graph without cycles"),
        (CHAIN[:2], {0: 1}, "dag: expected one row and column per node"),
        (CHAIN, {3: 0}, "do: expected nodes and outcomes of"),
        (CHAIN, {0: 2}, "do: expected nodes and outcomes of"),
    ],
)
def test_what_is_not_there_is_refused(dag: np.ndarray, do: dict[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        intervened(np.full(SIZES, 1 / 12), dag, do)


def test_pgmpy_says_the_same_of_the_exported_tables() -> None:
    networks = pytest.importorskip("pgmpy.models")
    factors = pytest.importorskip("pgmpy.factors.discrete")
    inference = pytest.importorskip("pgmpy.inference")
    rng = np.random.default_rng(7)
    dag = np.array([[0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    sizes = (2, 3, 2, 2)
    joint = by_hand(dag, random_tables(dag, sizes, rng), sizes, {})
    names = ["a", "b", "c", "d"]
    network = networks.DiscreteBayesianNetwork([(names[i], names[j]) for i, j in np.argwhere(dag)])
    for k, name in enumerate(names):
        parents = np.flatnonzero(dag[:, k])
        table = np.moveaxis(np.squeeze(shares_given(joint, 4, k, parents)), np.searchsorted(parents, k), 0)
        evidence = {"evidence": [names[j] for j in parents], "evidence_card": [sizes[j] for j in parents]}
        values = table.reshape(sizes[k], -1)
        network.add_cpds(factors.TabularCPD(name, sizes[k], values, **(evidence if len(parents) else {})))
    for do, given in (({"b": 2}, {}), ({"b": 1}, {"a": 1}), ({"a": 0}, {"d": 1}), ({"a": 1, "c": 0}, {"d": 0})):
        ours = intervened(joint, dag, {names.index(k): v for k, v in do.items()})
        ours = conditioned(ours, 4, {names.index(k): v for k, v in given.items()})
        for k, name in enumerate(names):
            if name not in do and name not in given:
                # VariableElimination on the network whose set nodes lost their causes: CausalInference.query takes
                # adjustment sets, which do not cover conditions on effects of what was set.
                theirs = inference.VariableElimination(_cut(network, do)).query([name], evidence={**do, **given})
                np.testing.assert_allclose(node_marginals(ours, 4)[k], theirs.values, atol=1e-9)
                if not given and not {names.index(set_) for set_ in do} & descendants(dag, [k]):
                    causal = inference.CausalInference(network).query([name], do=do, show_progress=False)
                    np.testing.assert_allclose(node_marginals(ours, 4)[k], causal.values, atol=1e-9)


def _cut(network: object, do: dict[str, int]) -> object:
    return network.do(list(do))  # type: ignore[attr-defined]
