"""Pretraining: the bound of a unit-normal autoencoder, and stand-ins for decoders that know nothing of Z."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from test_run import fitted, same
from tiny_fits import settings, tiny_samples
from torch.distributions import Independent, Normal, kl_divergence

from causalpima.inference.objectives.responsibilities import log_likelihood
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.config import DecoderConfig, EncoderConfig, FitConfig, ModalityConfig
from causalpima.inference.training.loop import pretraining_step, pretraining_terms
from causalpima.models.batch import Batch


def with_line(**changes: Any) -> FitConfig:
    """The curve is a straight line per cell, whatever Z is."""
    config = settings(**changes)
    line = ModalityConfig(EncoderConfig(sizes=(8,)), DecoderConfig("linear"))
    return dataclasses.replace(config, modality={**config.modality, "curve": line})


def first_batch(run: Run) -> Batch:
    return run.task.training.batch(torch.arange(16))


def test_terms_are_those_of_a_unit_normal_autoencoder() -> None:
    run = Run(tiny_samples(gaps=True, missing=True), settings(decoder__per_cell=True))
    batch, model = first_batch(run), run.state.model
    torch.manual_seed(4)
    terms = pretraining_terms(model, run.state.guide, batch)
    posterior = run.state.guide.encode(batch)
    torch.manual_seed(4)
    sample = posterior.loc + posterior.scale * torch.randn_like(posterior.loc)
    prior = Normal(torch.zeros_like(posterior.loc), 1.0)
    divergence = kl_divergence(Independent(Normal(posterior.loc, posterior.scale), 1), Independent(prior, 1))
    torch.testing.assert_close(terms.latent + terms.latent_entropy, -divergence, rtol=1e-4, atol=1e-4)
    for name in model.decoders:
        expected = log_likelihood(model, name, sample, batch).mean(-1)
        torch.testing.assert_close(terms.reconstruction[name], expected)


def moved_by_the_curve(run: Run, with_stand_ins: bool) -> bool:
    """Whether the likelihood of the curve alone teaches its encoder anything."""
    model = run.state.pretraining_model if with_stand_ins else run.state.model
    terms = pretraining_terms(model, run.state.guide, first_batch(run))
    parameters = list(run.state.guide.encoders["curve"].parameters())
    gradients = torch.autograd.grad(terms.reconstruction["curve"].sum(), parameters, allow_unused=True)
    return all(gradient is not None and bool(gradient.count_nonzero()) for gradient in gradients)


def test_the_encoder_of_a_curve_with_a_law_on_the_cell_learns_from_a_stand_in() -> None:
    run = Run(tiny_samples(), with_line())
    assert not moved_by_the_curve(run, with_stand_ins=False)
    assert moved_by_the_curve(run, with_stand_ins=True)


def test_a_step_of_pretraining_moves_the_stand_in_and_not_the_law() -> None:
    run = Run(tiny_samples(), with_line())
    before = run.weights()
    pretraining_step(run.state, first_batch(run), 1.0)
    after = run.weights()
    moved = {name for name, value in before.items() if not torch.equal(value, after[name])}
    learned = {name for name, _ in run.state.modules.named_parameters()}
    expected = {name for name in learned if name.startswith(("guide.encoders.", "stand_ins.curve."))}
    expected |= {name for name in learned if name.startswith("model.decoders.spectrum.")}
    assert moved & learned == expected
    assert "stand_ins.curve.variance.running" in moved


@pytest.mark.parametrize(("config", "expected"), [(settings(), []), (with_line(), ["curve"])])
def test_stand_ins_are_for_decoders_without_z_alone(config: FitConfig, expected: list[str]) -> None:
    run = Run(tiny_samples(), config)
    assert list(run.state.stand_ins) == expected
    model = run.state.pretraining_model
    assert model.graph is run.state.model.graph
    for name in model.decoders:
        stands_in = name in expected
        assert (model.decoders[name] is run.state.model.decoders[name]) == (not stands_in)
        assert not stands_in or model.decoders[name] is run.state.stand_ins[name]


def test_stand_ins_see_covariates() -> None:
    data = tiny_samples()
    batches = {"batch": torch.arange(41).numpy() % 3}
    data = dataclasses.replace(data, covariates=batches, covariate_levels={"batch": ("a", "b", "c")})
    run = Run(data, with_line())
    assert run.state.model.mean_covariates is not None
    assert moved_by_the_curve(run, with_stand_ins=True)
    run.train()
    assert run.finish().status in ("ok", "collapsed")


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_stand_ins_are_saved_and_restored(tmp_path: Path, stop: int) -> None:
    config = with_line(pretraining__epochs=2)
    run = Run(tiny_samples(), config)
    run.train(stop, RunFolder(tmp_path))
    resumed = Run(tiny_samples(), config)
    checkpoint = resumed.restore(RunFolder(tmp_path))
    saved = {name: value for name, value in checkpoint.weights.items() if name.startswith("stand_ins.curve.")}
    assert saved
    assert all(torch.equal(value, run.weights()[name]) for name, value in saved.items())
    assert all(torch.equal(value, resumed.weights()[name]) for name, value in saved.items())
    resumed.train(folder=RunFolder(tmp_path))
    assert same(resumed.finish(), fitted(config))
