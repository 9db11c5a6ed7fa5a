"""Prediction of one modality from another: the score by hand, and on a fit of clusters that two modalities share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_fits import settings, tiny_samples

from causalpima.inference.analyses.cross_modal import CrossModal, cross_modal, explained
from causalpima.inference.result import rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.training.fitted_run import FittedRun


def test_explained_is_one_minus_the_ratio_with_an_error_that_resampling_confirms() -> None:
    rng = np.random.default_rng(0)
    spread = rng.gamma(2.0, 1.0, 400)
    squared = 0.3 * spread * rng.gamma(4.0, 0.25, 400)
    value, error = explained(squared, spread)
    assert value == pytest.approx(1 - squared.sum() / spread.sum())
    index = rng.integers(0, 400, (2000, 400))
    resampled = 1 - squared[index].sum(1) / spread[index].sum(1)
    assert error == pytest.approx(resampled.std(), rel=0.1)


@pytest.fixture(scope="module")
def fit() -> tuple[Run, FittedRun, np.ndarray]:
    run = Run(tiny_samples(300), settings(pretraining__epochs=20, training__epochs=20, training__modality_dropout=0.3))
    run.train()
    result = run.finish()
    assert result.arrays is not None
    return run, rebuild_result(result), result.arrays.responsibilities


def scored(fit: tuple[Run, FittedRun, np.ndarray]) -> dict[str, CrossModal]:
    run, fitted, r = fit
    return cross_modal(fitted, run.data, run.split, r)


def test_clusters_that_both_modalities_show_are_predicted(fit: tuple[Run, FittedRun, np.ndarray]) -> None:
    found = scored(fit)
    assert set(found) == {"spectrum", "curve"}
    held_out = int((fit[0].split == "validation").sum())
    for score in found.values():
        assert score.n_samples == held_out
        assert score.r2 > 0.5
        assert score.r2_cluster_mean <= 1
        assert score.standard_error < 0.2


def test_the_same_seed_gives_the_same_scores(fit: tuple[Run, FittedRun, np.ndarray]) -> None:
    assert scored(fit) == scored(fit)


def test_predictions_do_not_see_what_they_predict(fit: tuple[Run, FittedRun, np.ndarray]) -> None:
    run, fitted, r = fit
    curves = run.data.modalities["curve"].copy()
    curves[run.split == "validation"] = np.random.default_rng(0).permutation(curves[run.split == "validation"])
    shuffled = replace(run.data, modalities={**run.data.modalities, "curve": curves})
    assert cross_modal(fitted, shuffled, run.split, r)["curve"].r2 < 0.2


def test_one_modality_alone_has_no_score(fit: tuple[Run, FittedRun, np.ndarray]) -> None:
    run, fitted, r = fit
    present = {**run.data.present, "curve": run.data.present["curve"] & (run.split == "train")}
    assert cross_modal(fitted, replace(run.data, present=present), run.split, r) == {}
