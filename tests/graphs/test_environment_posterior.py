"""Soft and do-type interventions upon named nodes: against scores by hand, and what they direct."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import causalpima.inference.graphs.environments as module
from causalpima.inference.clusters.environments import target_maps
from causalpima.inference.graphs.dags import GraphKnowledge, all_dags
from causalpima.inference.graphs.enumeration import Evidence, enumerated_posterior
from causalpima.inference.graphs.environments import HiddenSamples, InterventionKind, environment_posterior
from causalpima.inference.graphs.scores import Score, table_family_scores

NODES = ("h", "r", "s")
NOTHING = GraphKnowledge.none(NODES)
BDEU = Score("bdeu", 4.0)
# p(node = 1 | parents) of the chain h -> r -> s of the circles.
CHAIN = {"h": 0.5, "r": [0.3, 0.75], "s": [0.2, 0.7]}


def chain(shift: dict[str, float] | None = None) -> np.ndarray:
    """p(h, r, s); a soft intervention adds to the log-odds of its target."""
    odds = {name: np.exp((shift or {}).get(name, 0.0)) for name in CHAIN}
    h, r, s = (
        odds[name] * np.asarray(p) / (odds[name] * np.asarray(p) + 1 - np.asarray(p)) for name, p in CHAIN.items()
    )
    of_h = np.array([1 - h, h])
    of_r, of_s = (np.stack([1 - p, p], -1) for p in (r, s))
    joint: np.ndarray = np.einsum("a,ab,bc->abc", of_h, of_r, of_s)
    return joint


def drawn(*joints: np.ndarray, n: int = 4000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.multinomial(n, p.reshape(-1)).reshape(p.shape) for p in joints]).astype(float)


def bdeu_by_hand(table: np.ndarray, node: int, parents: list[int]) -> float:
    """A product of Dirichlet-multinomials, one per configuration of the parents."""
    others = tuple(k for k in range(table.ndim) if k != node and k not in parents)
    family = np.moveaxis(table.sum(others, keepdims=True), node, -1).reshape(-1, table.shape[node])
    a = 4.0 / (math.prod(table.shape[k] for k in parents) * table.shape[node])
    total = 0.0
    for row in family[: math.prod(table.shape[k] for k in parents)]:
        total += gammaln(a * len(row)) - gammaln(a * len(row) + row.sum())
        total += float((gammaln(a + row) - gammaln(a)).sum())
    return total


@pytest.mark.parametrize("kind", ["soft", "do"])
def test_scores_are_those_of_tables_of_their_own(kind: InterventionKind) -> None:
    """Every graph and every map of targets, by hand."""
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, (3, 2, 3, 2)).astype(float)
    dags, maps = all_dags(3), target_maps([None, 1], 3)
    by_hand = np.empty((len(dags), len(maps)))
    for (g, dag), (m, targets) in itertools.product(enumerate(dags), enumerate(maps)):
        total = 0.0
        for node in range(3):
            parents = [k for k in range(3) if dag[k, node]]
            upon = [e + 1 for e in range(2) if targets[e] == node]
            total += bdeu_by_hand(counts[[e for e in range(3) if e not in upon]].sum(0), node, parents)
            total += sum(bdeu_by_hand(counts[e], node, parents if kind == "soft" else []) for e in upon)
        by_hand[g, m] = total
    found = environment_posterior(counts, maps, NOTHING, kind, BDEU)
    weight = np.exp(by_hand - logsumexp(by_hand))
    expected = np.tensordot(weight.sum(1), dags, 1)
    np.testing.assert_allclose(found.posterior.edge_probability, expected, atol=1e-10)
    by_target = [[weight[:, maps[:, e] == node].sum() for node in range(3)] for e in range(2)]
    np.testing.assert_allclose(found.target_probability, by_target, atol=1e-10)
    assert found.posterior.log_marginal_likelihood == pytest.approx(logsumexp(by_hand) - np.log(weight.size))
    assert by_hand.max() == by_hand[(dags == found.graph).all((1, 2)), (maps == found.targets).all(1)].item()


def test_without_interventions_it_is_the_posterior_of_observations() -> None:
    counts = drawn(chain(), n=300)
    found = environment_posterior(counts, np.zeros((1, 0), dtype=int), NOTHING, "soft", BDEU).posterior
    expected = enumerated_posterior(table_family_scores(counts[0], BDEU), NOTHING, Evidence(BDEU, 300, 300))
    np.testing.assert_allclose(found.edge_probability, expected.edge_probability, atol=1e-10)
    np.testing.assert_allclose(found.compelled_probability, expected.compelled_probability, atol=1e-10)
    np.testing.assert_array_equal(found.best, expected.best)
    assert found.log_marginal_likelihood == pytest.approx(expected.log_marginal_likelihood)


# h --- r --- s by observation; upon r alone: h -> r -> s
@pytest.mark.parametrize("score", [Score(), BDEU])
def test_a_soft_intervention_in_the_middle_of_a_chain_directs_both_edges(score: Score) -> None:
    counts = drawn(chain(), chain({"r": 1.5}))
    observed = environment_posterior(counts[:1], np.zeros((1, 0), dtype=int), NOTHING, "soft", score).posterior
    assert observed.best.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert observed.compelled_probability.max() < 0.1
    found = environment_posterior(counts, np.array([[1]]), NOTHING, "soft", score)
    assert found.graph.astype(int).tolist() == found.posterior.best.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert found.posterior.compelled_probability[[0, 1], [1, 2]].min() > 0.9
    assert found.posterior.edge_probability[[1, 2], [0, 1]].max() < 0.05


# upon h: h -> r, and with it r -> s, which else were a collider; upon s: r -> s alone
@pytest.mark.parametrize(
    ("target", "graph"),
    [("h", [[0, 1, 0], [0, 0, 1], [0, 0, 0]]), ("s", [[0, 1, 0], [1, 0, 1], [0, 0, 0]])],
)
def test_classes_are_interventional_ones(target: str, graph: list[list[int]]) -> None:
    counts = drawn(chain(), chain({target: 1.5}))
    found = environment_posterior(counts, np.array([[NODES.index(target)]]), NOTHING, "soft", BDEU)
    assert found.posterior.best.tolist() == graph


def test_targets_are_found_with_the_graph() -> None:
    counts = drawn(chain(), chain({"h": 1.5}), chain({"r": -1.5}), chain({"s": 1.5}))
    found = environment_posterior(counts, target_maps([None] * 3, 3), NOTHING)
    assert found.targets.tolist() == [0, 1, 2]
    assert found.target_probability.argmax(1).tolist() == [0, 1, 2]
    assert found.posterior.best.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_allclose(found.target_probability.sum(1), 1)


def test_two_nodes_and_an_unknown_target_leave_nothing_open() -> None:
    """h -> r and a change of h: r depends on the environment through h alone, which no other graph and target say."""
    before, after = np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([[0.16, 0.04], [0.16, 0.64]])
    counts, known = 4000 * np.stack([before, after]), GraphKnowledge.none(NODES[:2])
    found = environment_posterior(counts, target_maps([None], 2), known)
    assert found.posterior.best.tolist() == [[0, 1], [0, 0]]
    assert found.target_probability[0, 0] > 0.99


def test_scores_of_a_class_are_equal() -> None:
    """Graphs that the class leaves open get the same weight from any data: upon s, h -> r and r -> h."""
    counts = drawn(chain(), chain({"s": 1.5}), n=200)
    found = environment_posterior(counts, np.array([[2]]), NOTHING, "soft", BDEU).posterior
    dags = {str(dag.tolist()): w for dag, w in zip(found.dags, found.weights, strict=True)}
    one, other = [[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    assert dags[str(one)] == pytest.approx(dags[str(other)])
    third = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert dags[str(third)] != pytest.approx(dags[str(one)], rel=0.01)


def test_what_is_known_holds() -> None:
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[0, 1] = True
    known = GraphKnowledge(NODES, forbidden, np.zeros((3, 3), dtype=bool))
    found = environment_posterior(drawn(chain(), chain({"r": 1.5})), np.array([[1]]), known).posterior
    assert found.edge_probability[0, 1] == 0
    assert known.allows(found.dags).all()


def test_a_class_is_fitted_as_a_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upon s: h -> r and r -> h are left open, however few pairs are fitted."""
    counts = drawn(chain(), chain({"s": 1.5}), n=2000).round()
    cells = np.concatenate([np.repeat(np.arange(8), table.reshape(-1).astype(int)) for table in counts])
    codes = np.repeat([0, 1], counts.reshape(2, -1).sum(1).astype(int))
    with np.errstate(divide="ignore"):
        hidden = HiddenSamples(np.log(np.eye(8)[cells]), codes, (2, 2, 2))
    monkeypatch.setattr(module, "MOST_FITTED", 1)
    found = environment_posterior(counts, np.array([[2]]), NOTHING, "soft", hidden=hidden).posterior
    assert found.best.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
