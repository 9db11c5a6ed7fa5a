"""EM over environments: against counts where cells are seen, against a numerical maximum, and what never falls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from causalpima.inference.clusters.environments import environment_counts, target_maps
from causalpima.inference.graphs.dags import GraphKnowledge, all_dags
from causalpima.inference.graphs.environments import (
    HiddenSamples,
    InterventionKind,
    environment_bic,
    environment_posterior,
    fit_environments,
)
from causalpima.inference.graphs.hidden import fit_dags
from causalpima.inference.graphs.scores import Score

OUTCOMES = (2, 3, 2)
NOTHING = GraphKnowledge.none(("a", "b", "c"))


def samples(n: int, overlap: float, seed: int = 0, outcomes: tuple[int, ...] = OUTCOMES) -> HiddenSamples:
    """Cells drawn at random per environment; each seems to be the next one with some probability."""
    rng = np.random.default_rng(seed)
    size, codes = int(np.prod(outcomes)), np.repeat(np.arange(3), n)
    cells = np.concatenate([rng.choice(size, n, p=rng.dirichlet(np.ones(size))) for _ in range(3)])
    shown = np.where(rng.random(len(cells)) < overlap, (cells + 1) % size, cells)
    likelihood = (1 - overlap) * np.eye(size) + overlap * np.roll(np.eye(size), 1, axis=1)
    with np.errstate(divide="ignore"):
        return HiddenSamples(np.log(likelihood[:, shown].T), codes, outcomes)


def counts_of(seen: HiddenSamples) -> np.ndarray:
    """Where cells are seen."""
    cells = seen.log_likelihood.argmax(1)
    tables = [np.bincount(cells[seen.codes == e], minlength=seen.log_likelihood.shape[1]) for e in range(3)]
    return np.stack(tables).reshape(3, *seen.outcomes).astype(float)


@pytest.mark.parametrize("kind", ["soft", "do"])
def test_cells_that_are_seen_have_the_posterior_of_their_counts(kind: InterventionKind) -> None:
    seen, maps = samples(60, 0.0), target_maps([None, 1], 3)
    by_counts = environment_posterior(counts_of(seen), maps, NOTHING, kind)
    by_fits = environment_posterior(counts_of(seen), maps, NOTHING, kind, hidden=seen)
    np.testing.assert_allclose(by_fits.posterior.edge_probability, by_counts.posterior.edge_probability, atol=1e-3)
    np.testing.assert_allclose(by_fits.target_probability, by_counts.target_probability, atol=1e-3)
    assert by_fits.posterior.log_marginal_likelihood == pytest.approx(
        by_counts.posterior.log_marginal_likelihood, abs=1e-2
    )


def test_two_nodes_by_a_numerical_maximum() -> None:
    """a -> b, one environment upon b: p(a) shared, p(b | a) twice; five log-odds."""
    hidden = samples(80, 0.3, 1, (2, 2))
    keep = hidden.codes < 2
    hidden = HiddenSamples(hidden.log_likelihood[keep], hidden.codes[keep], (2, 2))

    def value(odds: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-odds))
        of_a, of_b = np.array([1 - p[0], p[0]]), np.stack([1 - p[1:], p[1:]], -1).reshape(2, 2, 2)
        joint = (of_a[:, None] * of_b).reshape(2, 4)
        return -float(np.log((np.exp(hidden.log_likelihood) * joint[hidden.codes]).sum(1)).sum())

    best = min(minimize(value, start, method="BFGS").fun for start in (np.zeros(5), np.ones(5), -np.ones(5)))
    found, _ = fit_environments(hidden, np.array([[0, 1], [0, 0]]), np.array([1]), "soft")
    assert found == pytest.approx(-best, abs=1e-3)


def test_without_interventions_it_is_the_fit_of_one_graph() -> None:
    hidden = samples(100, 0.2)
    one = HiddenSamples(hidden.log_likelihood, 0 * hidden.codes, OUTCOMES)
    for dag in all_dags(3)[::6]:
        found, joint = fit_environments(one, dag, np.array([], dtype=int), "soft")
        expected = fit_dags(hidden.log_likelihood, OUTCOMES, dag[None])
        assert found == pytest.approx(expected.log_likelihood[0], abs=1e-5)
        np.testing.assert_allclose(joint[0].reshape(-1), expected.joint[0], atol=1e-3)


def test_equivalent_graphs_and_targets_have_one_score() -> None:
    """An environment upon the end of a -> b -> c: a -> b and b -> a are alike; upon its middle they are not."""
    hidden = samples(100, 0.1, 3)
    keep = hidden.codes < 2
    hidden = HiddenSamples(hidden.log_likelihood[keep], hidden.codes[keep], OUTCOMES)
    one, other = (np.zeros((3, 3), dtype=int) for _ in range(2))
    one[[0, 1], [1, 2]] = 1
    other[[1, 1], [0, 2]] = 1
    at_end, in_middle = (
        [environment_bic(hidden, dag, np.array([target]), "soft") for dag in (one, other)] for target in (2, 1)
    )
    assert at_end[0] == pytest.approx(at_end[1], abs=1e-3)
    assert abs(in_middle[0] - in_middle[1]) > 0.1


def test_p_of_n_normalises_and_shares_what_is_shared() -> None:
    hidden, dag = samples(100, 0.2), np.zeros((3, 3), dtype=int)
    dag[0, 1] = 1
    _, joint = fit_environments(hidden, dag, np.array([1, 2]), "soft")
    np.testing.assert_allclose(joint.sum((1, 2, 3)), 1)
    marginals = joint.sum((2, 3)), joint.sum((1, 2))
    np.testing.assert_allclose(marginals[0], marginals[0][[0, 0, 0]])
    np.testing.assert_allclose(marginals[1][0], marginals[1][1])
    assert np.abs(marginals[1][2] - marginals[1][0]).max() > 0.01
    _, cut = fit_environments(hidden, dag, np.array([1, 2]), "do")
    given = cut[1].sum(2) / cut[1].sum((1, 2))[:, None]
    np.testing.assert_allclose(given[0], given[1])


def test_errors_in_the_middle_of_a_chain_make_up_no_edge() -> None:
    """h -> r -> s with an environment upon r, r wrong in one of ten: counts of what is seen join h and s."""
    rng, n = np.random.default_rng(0), 15_000
    codes = np.repeat([0, 1], n)
    h = (rng.random(2 * n) < 0.5).astype(int)
    r = (rng.random(2 * n) < np.array([[0.3, 0.75], [0.6, 0.9]])[codes, h]).astype(int)
    s = (rng.random(2 * n) < np.array([0.2, 0.7])[r]).astype(int)
    seen_r = np.where(rng.random(2 * n) < 0.1, 1 - r, r)
    cells = np.array(list(np.ndindex(2, 2, 2)))
    same = np.stack([h, seen_r, s], 1)[:, None] == cells
    with np.errstate(divide="ignore"):
        likelihood = np.log(np.where(same, [1, 0.9, 1], [0, 0.1, 0]).prod(-1))
    hidden, plain = HiddenSamples(likelihood, codes, (2, 2, 2)), np.zeros((2, 2, 2, 2))
    np.add.at(plain, (codes, h, seen_r, s), 1)
    joint = fit_dags(likelihood, (2, 2, 2), np.triu(np.ones((1, 3, 3), dtype=int), 1)).joint[0]
    responsibilities = joint * np.exp(likelihood)
    responsibilities /= responsibilities.sum(1, keepdims=True)
    counts = environment_counts(responsibilities, codes, 2).reshape(2, 2, 2, 2)
    by_plain_counts = environment_posterior(plain, np.array([[1]]), NOTHING).posterior
    modelled = environment_posterior(counts, np.array([[1]]), NOTHING, hidden=hidden).posterior
    assert by_plain_counts.adjacency_probability[0, 2] > 0.95
    assert modelled.adjacency_probability[0, 2] < 0.2
    assert modelled.best.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_bdeu_of_hidden_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^score: expected BIC where nodes are hidden, got bdeu"):
        environment_posterior(
            counts_of(samples(20, 0.0)), np.array([[0, 1]]), NOTHING, "soft", Score("bdeu", 1.0), samples(20, 0.0)
        )
