"""Runs on data with groups, a test split and covariates: who is trained on, who is scored, what decoders are told."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.analyses.scores import evaluate
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.fit import fit
from causalpima.inference.run import Run
from causalpima.inference.training.config import FitConfig
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.laws import Linear

pytestmark = pytest.mark.filterwarnings("ignore:The fit collapsed")


def replicated(n: int = 60, size: int = 3) -> MultimodalData:
    """Specimens of three samples each, their codes in no order."""
    groups = np.random.default_rng(1).permutation(np.arange(n) // size) * 7
    return dataclasses.replace(tiny_samples(n), groups=groups)


SPLIT = {"training__validation_fraction": 0.2, "training__test_fraction": 0.25}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_groups_stay_whole(seed: int) -> None:
    data = replicated()
    run = Run(data, settings(seed=seed, **SPLIT))
    assert data.groups is not None
    for group in np.unique(data.groups):
        assert len(set(run.split[data.groups == group])) == 1
    assert [int((run.split == part).sum()) for part in ("train", "validation", "test")] == [33, 12, 15]
    assert run.task.training.n_samples == 33
    assert run.task.validation is not None
    assert run.task.validation.n_samples == 12


def test_nothing_of_the_test_split_is_trained_on() -> None:
    data = replicated()
    run = Run(data, settings(**SPLIT))
    rows = run.split == "test"
    spoilt = {name: values.copy() for name, values in data.modalities.items()}
    for values in spoilt.values():
        values[rows] = np.random.default_rng(2).normal(50, 9, values[rows].shape)
    other = Run(dataclasses.replace(data, modalities=spoilt), settings(**SPLIT))
    run.train()
    other.train()
    after = other.weights()
    assert all(torch.equal(value, after[name]) for name, value in run.weights().items())
    assert run.modalities["curve"].standardisation == other.modalities["curve"].standardisation


def test_scores_are_those_of_the_test_split() -> None:
    run = Run(replicated(), settings(**SPLIT))
    run.train()
    result = run.finish()
    assert result.arrays is not None
    found = result.summary["evaluation"]
    assert found["split"] == "test"
    rows = run.split == "test"
    r, factors = result.arrays.responsibilities[rows], {"cluster": run.data.factors["cluster"][rows]}
    by_hand = evaluate(r, [2, 2], factors)
    assert (found["nmi"], found["cluster_accuracy"]) == pytest.approx((by_hand["nmi"], by_hand["cluster_accuracy"]))
    held_out = result.summary["held_out_log_likelihood"]
    assert (held_out["split"], held_out["n_samples"]) == ("test", 15)
    counts = result.summary["clusters"]["n_groups"]
    assert sum(counts) == 20
    assert sum(result.summary["clusters"]["sizes"]) == 60


def test_without_a_test_split_all_samples_are_scored() -> None:
    result = fit(tiny_samples(), config=settings())
    assert result.summary["evaluation"]["split"] == "all"
    assert result.summary["clusters"]["n_groups"] is None


# Covariates


def with_batches() -> MultimodalData:
    codes = {"batch": np.arange(60) % 3, "machine": (np.arange(60) < 20).astype(int)}
    levels = {"batch": ("a", "b", "c"), "machine": ("old", "new")}
    return dataclasses.replace(tiny_samples(60), covariates=codes, covariate_levels=levels)


def test_without_covariates_decoders_see_their_training_average() -> None:
    run = Run(with_batches(), settings(**SPLIT))
    indicators = np.concatenate([np.eye(3)[np.arange(60) % 3], np.eye(2)[(np.arange(60) < 20).astype(int)]], axis=1)
    average: Any = run.state.model.mean_covariates
    np.testing.assert_allclose(average.numpy(), indicators[run.split == "train"].mean(0), rtol=1e-6)
    run.train()
    assert run.finish().status in ("ok", "collapsed")


@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
def test_what_a_batch_is_called_reaches_the_decoders(objective: str) -> None:
    run = Run(with_batches(), settings(objective=objective))
    run.train()
    batch = run.task.training.batch(torch.arange(8))
    assert batch.covariates is not None
    latent, cell = torch.zeros(8, 2, dtype=torch.float32), torch.zeros(1, dtype=torch.long)
    for name in run.state.decoders:
        seen = run.state.model.decode(name, latent, cell, batch.covariates).mean
        other = run.state.model.decode(name, latent, cell, batch.covariates.roll(1, 0)).mean
        assert not torch.allclose(seen, other)
        torch.testing.assert_close(seen.roll(1, 0), other)


# Decoders of one's own


def quick() -> FitConfig:
    return settings(training__epochs=1)


def test_a_law_is_fitted_and_the_object_that_was_passed_stays_as_it_is() -> None:
    law = Linear()
    before = dict(vars(law))
    result = fit(tiny_samples(), config=quick(), decoders={"curve": law})
    assert vars(law) == before
    assert "slope" in next(iter(result.summary["modalities"]["curve"]["physics"].values()))


def test_a_decoder_is_copied_and_its_copy_trained() -> None:
    mine = mlp_decoder(2, (8,), (5,), DecoderVariance("learned", 0.7)).float()
    before = {name: value.clone() for name, value in mine.state_dict().items()}
    results = [fit(tiny_samples(), config=quick(), decoders={"curve": mine}) for _ in range(2)]
    assert all(torch.equal(value, before[name]) for name, value in mine.state_dict().items())
    trained = {name: results[0].weights[f"model.decoders.curve.{name}"] for name in before}
    assert not torch.equal(trained["head.weight"], before["head.weight"])
    assert all(torch.equal(value, results[1].weights[name]) for name, value in results[0].weights.items())


def test_a_law_in_a_run_with_covariates_gaps_and_distillation() -> None:
    codes = {"batch": np.arange(60) % 2}
    data = tiny_samples(60, gaps=True, missing=True)
    data = dataclasses.replace(data, covariates=codes, covariate_levels={"batch": ("a", "b")})
    config = settings(distillation__epochs=1, training__modality_dropout=0.3, model__likelihood_scaling="dimension")
    run = Run(data, config, decoders={"curve": Linear()})
    run.train()
    assert isinstance(run.state.decoders["curve"], PhysicsDecoder)
    result = run.finish()
    assert result.arrays is not None
    assert np.isfinite(result.arrays.responsibilities).all()
