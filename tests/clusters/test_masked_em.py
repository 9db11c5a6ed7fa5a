"""Expectation-maximisation under a mask: against one written out, monotone, and on data that only overlap names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from causalpima.inference.analyses.node_scores import node_accuracy
from causalpima.inference.clusters.masked import Fit, MaskedMixture, Parameters, View, masked_em
from causalpima.models.block_mixture import level_of_cell

OUTCOMES = (2, 2, 2)
OVERLAPPING = [(1, 2), (0, 1), (0, 2)]


def make_views(
    seed: int, visible: Sequence[tuple[int, ...]] = OVERLAPPING, n: int = 600, absent: float = 0.0
) -> tuple[list[View], dict[str, np.ndarray]]:
    """Cells of a collider h -> s <- r, and two numbers per modality around a mean per level, far apart."""
    rng = np.random.default_rng(seed)
    h, r = (rng.random(n) < 0.5).astype(int), (rng.random(n) < 0.4).astype(int)
    s = (rng.random(n) < np.array([[0.15, 0.5], [0.4, 0.85]])[h, r]).astype(int)
    views = []
    for nodes in visible:
        level = level_of_cell(OUTCOMES, nodes)
        corners = 3.0 * np.array([[0, 0], [1, 0.2], [0.1, 1], [1.2, 1.1]])[rng.permutation(4)][: level.max() + 1]
        points = corners[level[4 * h + 2 * r + s]] + 0.4 * rng.standard_normal((n, 2))
        present = rng.random(n) >= absent
        views.append(View(np.where(present[:, None], points, 0.0), level, present))
    return views, {"h": h, "r": r, "s": s}


def worst_node(responsibilities: np.ndarray, factors: dict[str, np.ndarray]) -> float:
    cell = responsibilities.argmax(1)
    return node_accuracy(np.stack(np.unravel_index(cell, OUTCOMES), 1), OUTCOMES, factors).worst


def random_parameters(mixture: MaskedMixture, rng: np.random.Generator) -> Parameters:
    def covariance(count: int) -> np.ndarray:
        root = rng.standard_normal((count, 2, 2))
        return root @ root.transpose(0, 2, 1) + 0.3 * np.eye(2)

    sizes = [int(level.max()) + 1 for level in mixture.levels]
    share = rng.dirichlet(np.ones(mixture.n_cells))
    loc = [rng.standard_normal((size, 2)) for size in sizes]
    return Parameters(np.log(share), loc, [covariance(size) for size in sizes])


def by_hand(views: list[View], parameters: Parameters) -> np.ndarray:
    """log π_c + log p(e | c), one modality and one cell after the other, `[n, C]`."""
    total = np.repeat(parameters.log_share[None], len(views[0].embedding), 0)
    for view, loc, covariance in zip(views, parameters.loc, parameters.covariance, strict=True):
        for cell, level in enumerate(view.level):
            density = multivariate_normal(loc[level], covariance[level]).logpdf(view.embedding)
            total[:, cell] += np.where(view.present, density, 0.0)
    return total


@pytest.mark.parametrize("absent", [0.0, 0.4])
def test_one_step_is_that_of_the_definition(absent: float) -> None:
    views, _ = make_views(0, n=80, absent=absent)
    mixture = MaskedMixture(views, regularisation=1e-3)
    parameters = random_parameters(mixture, np.random.default_rng(1))
    joint = by_hand(views, parameters)
    r = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    found, log_likelihood = mixture.expectation(parameters)
    np.testing.assert_allclose(found, r, atol=1e-10)
    np.testing.assert_allclose(log_likelihood, logsumexp(joint, axis=1), rtol=1e-10)
    after = mixture.step(found)
    np.testing.assert_allclose(np.exp(after.log_share), r.mean(0))
    for view, loc, covariance in zip(views, after.loc, after.covariance, strict=True):
        kappa = 1e-3 * 80 / 4
        for level in range(4):
            weight = r[:, view.level == level].sum(1) * view.present
            mean = weight @ view.embedding / weight.sum()
            residual = view.embedding - mean
            spread = (residual.T * weight) @ residual + kappa * np.eye(2)
            np.testing.assert_allclose(loc[level], mean)
            np.testing.assert_allclose(covariance[level], spread / (weight.sum() + kappa))


@pytest.mark.parametrize("absent", [0.0, 0.5])
@pytest.mark.parametrize("regularisation", [1e-4, 0.5])
def test_no_step_lowers_the_objective(absent: float, regularisation: float) -> None:
    views, _ = make_views(3, n=150, absent=absent)
    mixture = MaskedMixture(views, regularisation)
    for seed in range(5):
        parameters, values = random_parameters(mixture, np.random.default_rng(seed)), []
        for _ in range(20):
            values.append(mixture.objective(parameters))
            parameters = mixture.step(mixture.expectation(parameters)[0])
        assert np.diff(values).min() > -1e-12
        assert values[-1] - values[0] > 0.1, "there was something to gain"


@pytest.mark.parametrize("absent", [0.0, 0.2])
def test_overlapping_masks_give_every_node(absent: float) -> None:
    views, factors = make_views(5, absent=absent)
    found = masked_em(views, seed=0)
    truth = 4 * factors["h"] + 2 * factors["r"] + factors["s"]
    mixture = MaskedMixture(views, 1e-4)
    best = mixture.run(mixture.step(np.eye(8)[truth]), 500, 1e-8)
    ceiling = worst_node(mixture.expectation(best.parameters)[0], factors)
    assert worst_node(found.cell_responsibilities, factors) > ceiling - 0.01
    assert found.responsibilities.shape == (600, 8)
    np.testing.assert_allclose(found.responsibilities.sum(1), 1.0)
    assert [candidate.size for candidate in found.candidates] == [8] * 3


def test_one_modality_that_sees_everything_does_not_give_nodes() -> None:
    """Negative control: without a mask any labelling of the same cells is as likely."""
    views, _ = make_views(5)
    rng = np.random.default_rng(0)
    level = np.arange(8)
    corners = 3.0 * rng.standard_normal((8, 2))
    cell = rng.integers(0, 8, 400)
    view = View(corners[cell] + 0.1 * rng.standard_normal((400, 2)), level, np.ones(400, dtype=bool))
    mixture = MaskedMixture([view], 1e-4)
    fit = mixture.run(mixture.step(np.eye(8)[cell]), 50, 1e-8)
    other = mixture.run(mixture.step(np.eye(8)[rng.permutation(8)[cell]]), 50, 1e-8)
    assert fit.objective == pytest.approx(other.objective, abs=1e-6)
    # Under the overlapping masks the same exchange of two cells costs likelihood.
    masked = MaskedMixture(views, 1e-4)
    right = masked_em(views, seed=0).cell_responsibilities
    wrong = right[:, [1, 0, 2, 3, 4, 5, 6, 7]]
    objectives = [masked.objective(masked.step(r)) for r in (right, wrong)]
    assert objectives[0] > objectives[1] + 0.01


def test_it_is_the_same_every_time_and_does_not_depend_on_units() -> None:
    views, _ = make_views(1, n=200)
    found = masked_em(views, seed=4, n_starts=4)
    assert np.array_equal(found.responsibilities, masked_em(views, seed=4, n_starts=4).responsibilities)
    scaled = [View(1e3 * view.embedding + 5.0, view.level, view.present) for view in views]
    np.testing.assert_allclose(
        masked_em(scaled, seed=4, n_starts=4).responsibilities, found.responsibilities, atol=1e-6
    )


def test_more_samples_than_are_fitted_get_responsibilities_too() -> None:
    views, factors = make_views(2)
    found = masked_em(views, seed=0, n_fit=300)
    assert found.responsibilities.shape == (600, 8)
    assert worst_node(found.responsibilities, factors) > 0.95


@pytest.mark.parametrize("case", ["few points", "level without samples", "modality with one sample"])
def test_little_data_is_no_error(case: str) -> None:
    views, _ = make_views(0, n=12)
    if case == "few points":
        views = [View(np.round(view.embedding / 9), view.level, view.present) for view in views]
    elif case == "level without samples":
        views[0] = View(np.zeros((12, 2)), views[0].level, views[0].present)
    else:
        views[0] = View(views[0].embedding, views[0].level, np.arange(12) == 3)
    found = masked_em(views, seed=0, n_starts=3)
    assert np.isfinite(found.responsibilities).all()


def test_embeddings_that_are_not_finite_are_refused() -> None:
    views, _ = make_views(0, n=20)
    views[1].embedding[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"^embedding: expected finite values, got NaN or infinity in 1 of 20 rows"):
        masked_em(views, seed=0)


def test_the_start_that_is_likeliest_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    views, _ = make_views(7, n=200)
    reached: list[Fit] = []
    run = MaskedMixture.run

    def spy(self: MaskedMixture, *args: Any) -> Fit:
        reached.append(run(self, *args))
        return reached[-1]

    monkeypatch.setattr(MaskedMixture, "run", spy)
    found = masked_em(views, seed=0, n_starts=6, n_best=2)
    assert len(reached) == 8
    bounds = [candidate.lower_bound for candidate in found.candidates]
    assert max(bounds) == max(fit.objective for fit in reached)
