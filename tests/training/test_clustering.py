"""The mixture during training: read out, written back, kept in its numbering, and p(N) fitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.clusters.clustering import ReadOut
from causalpima.inference.run import Run
from causalpima.inference.training import clustering
from causalpima.inference.training.clustering import cell_counts, embed, fit_graph, start_clusters, update_mixture
from causalpima.inference.training.state import DivergedError
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture


@contextmanager
def pretrained(**changes: Any) -> Iterator[Run]:
    run = Run(tiny_samples(60, missing=bool(changes.pop("missing", False))), settings(pretraining__epochs=3, **changes))
    run.train(3)
    with run._working():
        run.state.modules.eval()
        yield run


def test_embedding_is_that_of_the_guide_in_the_order_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "PASS_SIZE", 7)
    with pretrained(missing=True) as run:
        whole = run.state.guide.encode(next(run.task.training.batches(1000)))
        found = embed(run.state, run.task.training)
        torch.testing.assert_close(found.loc, whole.loc)
        torch.testing.assert_close(found.log_variance, whole.log_variance)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("gaussians", ["several", "one"])
def test_what_was_read_out_is_written_back(covariance: str, gaussians: str) -> None:
    with pretrained(model__covariance=covariance, mixture__gaussians=gaussians) as run:
        found = start_clusters(run.state, run.task.training, run.config, keep_cells=False)
        posterior = embed(run.state, run.task.training)
        mixture = run.state.model.mixture
        r = found.cell_responsibilities if gaussians == "one" else found.responsibilities
        cell = np.arange(4) if gaussians == "one" else found.component_cell
        assert mixture.component_cell[: len(cell)].tolist() == cell.tolist()
        for k in np.flatnonzero(r.sum(0) > 2):
            weight = torch.from_numpy(r[:, k] / r[:, k].sum())
            mean = weight @ posterior.loc.double()
            spread = posterior.loc.double() - mean
            scatter = spread.T @ (weight[:, None] * spread) + torch.diag(weight @ posterior.log_variance.double().exp())
            expected = torch.diag(scatter.diagonal()) if covariance == "diagonal" else scatter
            torch.testing.assert_close(mixture.component_loc[k].double(), mean, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(mixture.covariance()[k].double(), expected, rtol=1e-2, atol=1e-3)


def test_cells_keep_their_numbers() -> None:
    with pretrained(read_out__sizes=(4,)) as run:
        first = start_clusters(run.state, run.task.training, run.config, keep_cells=False)
        mixture = run.state.model.mixture
        assert isinstance(mixture, GaussianMixture)
        order = torch.tensor([2, 0, 3, 1])
        mixture.replace(
            mixture.component_loc, mixture.component_scale, order[mixture.component_cell], mixture.component_log_share
        )
        fit_graph(run.state, cell_counts(run.state, run.task.training, run.config), run.config, 200)
        again = start_clusters(run.state, run.task.training, run.config, keep_cells=True)
        expected = order.numpy()[first.cell_responsibilities.argmax(1)]
        assert np.mean(again.cell_responsibilities.argmax(1) == expected) > 0.95
        assert np.mean(first.cell_responsibilities.argmax(1) == expected) < 0.5, "else this test could not fail"


def test_cells_that_came_out_empty_get_a_component(monkeypatch: pytest.MonkeyPatch) -> None:
    def half_empty(embedding: np.ndarray, n_cells: int, **_: object) -> ReadOut:
        r = np.zeros((len(embedding), 3))
        r[np.arange(len(embedding)), np.arange(len(embedding)) % 3] = 1
        return ReadOut(r, np.array([3, 3, 1]), n_cells, ())

    monkeypatch.setattr(clustering, "read_out", half_empty)
    with pretrained() as run:
        start_clusters(run.state, run.task.training, run.config, keep_cells=False)
        mixture = run.state.model.mixture
        assert mixture.component_cell.tolist() == [3, 3, 1, 0, 2]
        assert bool(torch.isfinite(mixture.component_loc).all())
        assert len(torch.unique(mixture.component_loc, dim=0)) == 5, "no two are the same"


def test_the_graph_is_fitted_to_the_cells() -> None:
    with pretrained() as run:
        share = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64)
        fit_graph(run.state, 1000 * share, run.config, 1500)
        torch.testing.assert_close(
            run.state.model.graph.log_joint().exp().reshape(-1).double(), share, rtol=0, atol=0.02
        )
        assert isinstance(run.state.model.graph, HodgeGraph)
        assert bool((run.state.model.graph.pair_weight >= 0).all())


def test_fitting_the_graph_moves_nothing_else() -> None:
    with pretrained() as run:
        before = run.weights()
        with torch.no_grad():
            fit_graph(run.state, torch.tensor([1.0, 2.0, 3.0, 4.0]), run.config, 5)
        changed = {name for name, value in run.weights().items() if not torch.equal(value, before[name])}
        assert {name.rpartition(".")[2] for name in changed} == {"node_score", "pair_weight", "conditional_logits"}


def test_counts_add_up_to_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "PASS_SIZE", 7)
    for objective in ("collapsed", "meanfield", "paper"):
        with pretrained(objective=objective) as run:
            start_clusters(run.state, run.task.training, run.config, keep_cells=False)
            counts = cell_counts(run.state, run.task.training, run.config)
            assert counts.shape == (4,)
            assert float(counts.sum()) == pytest.approx(run.task.training.n_samples)


def test_an_update_moves_the_components_to_the_samples() -> None:
    with pretrained() as run:
        start_clusters(run.state, run.task.training, run.config, keep_cells=False)
        mixture = run.state.model.mixture
        read_out = mixture.component_loc.clone()
        mixture.component_loc.add_(0.5)
        moved = update_mixture(run.state, run.task.training, run.config)
        assert moved == []
        assert float((mixture.component_loc - read_out).norm()) < float(torch.full_like(read_out, 0.5).norm())


def test_an_empty_component_is_told_and_moved() -> None:
    with pretrained(mixture__gaussians="one") as run:
        start_clusters(run.state, run.task.training, run.config, keep_cells=False)
        run.state.model.mixture.component_loc[2] += 1e3
        assert update_mixture(run.state, run.task.training, run.config) == [2]
        assert float(run.state.model.mixture.component_loc[2].abs().max()) < 100


@pytest.mark.parametrize("step", [embed, start_clusters, update_mixture, cell_counts])
def test_an_embedding_that_is_not_finite_is_a_divergence(step: Any) -> None:
    with pretrained() as run:
        next(iter(run.state.guide.parameters())).data.fill_(float("inf"))
        more = () if step is embed else (run.config,)
        options = {"keep_cells": False} if step is start_clusters else {}
        with pytest.raises(DivergedError, match=r"^the (embedding|mass of the clusters) is not finite$"):
            step(run.state, run.task.training, *more, **options)
