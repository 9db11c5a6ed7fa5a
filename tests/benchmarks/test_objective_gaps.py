"""Gaps between the objectives: measured by drawing, predicted by quadrature, and both by a plain grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from objective_gaps import bounds, gaps_of_run, main, predicted
from scipy.special import logsumexp
from scipy.stats import norm

from causalpima.guides.encoders import GaussianParameters
from causalpima.inference.svi import main as svi
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

SHARE, MEANS, SDS = np.array([0.3, 0.7]), np.array([[-0.5, 0.2], [0.7, 0.4]]), np.array([[0.6, 0.9], [0.8, 0.5]])
LOC, SD = np.array([0.1, 0.0]), np.array([0.7, 0.4])


def two_groups(per_cell: bool, n_copies: int = 25) -> tuple[CausalPIMA, GaussianParameters, Batch]:
    """Two Gaussians that overlap, copies of one sample; N has two outcomes."""
    graph = HodgeGraph((2,))
    graph.conditional_logits.data = torch.from_numpy(np.log(SHARE))[None]
    mixture = GaussianMixture(2, 2, "diagonal")
    mixture.replace(torch.from_numpy(MEANS), torch.from_numpy(SDS), torch.arange(2), torch.zeros(2))
    decoder = mlp_decoder(2, (3,), (4,), DecoderVariance("fixed", 0.2), n_cells=2 if per_cell else None)
    model = CausalPIMA(graph, mixture, {"x": decoder}).eval()
    loc, log_variance = torch.from_numpy(LOC), torch.from_numpy(2 * np.log(SD))
    posterior = GaussianParameters(loc.repeat(n_copies, 1), log_variance.repeat(n_copies, 1))
    values = torch.tensor([1.5, -1.0, 2.0]).repeat(n_copies, 1)
    return model, posterior, Batch({"x": values}, {"x": None}, torch.arange(n_copies), n_copies)


def on_a_grid() -> dict[str, float]:
    """The divergences by a trapezoidal rule over six standard deviations; decoders on z alone."""
    axes = [np.linspace(m - 6 * s, m + 6 * s, 241) for m, s in zip(LOC, SD, strict=True)]
    z = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    weight = norm.pdf(z, LOC, SD).prod(-1)
    weight /= weight.sum()
    log_joint = np.log(SHARE) + norm.logpdf(z[:, None], MEANS, SDS).sum(-1)
    log_gamma = log_joint - logsumexp(log_joint, axis=1, keepdims=True)
    best = weight @ log_joint
    log_best = best - logsumexp(best)
    mean_log, mean = weight @ log_gamma, weight @ np.exp(log_gamma)
    return {
        "meanfield": float((np.exp(log_best) * (log_best - mean_log)).sum()),
        "paper": float(weight @ (np.exp(log_gamma) * log_gamma).sum(1) - mean @ mean_log),
    }


def test_predictions_are_the_divergences_on_a_grid() -> None:
    expected = on_a_grid()
    assert predicted(*two_groups(per_cell=False), order=20) == pytest.approx(expected, abs=1e-6)
    assert 0.01 < expected["meanfield"] < expected["paper"]


@pytest.mark.parametrize("per_cell", [False, True])
def test_measured_gaps_are_those_that_are_predicted(per_cell: bool) -> None:
    case = two_groups(per_cell)
    expected, found = predicted(*case, order=12), bounds(*case, n_draws=100)
    for name, value in expected.items():
        measured, error = found.gap(name)
        assert measured == pytest.approx(value, abs=4 * error)
        plain = found.collapsed - getattr(found, name)
        assert error <= float(plain.std()) / 100**0.5
        assert error < 0.1 * value  # else zero would pass, too


def test_another_latent_dimension_is_refused() -> None:
    model, posterior, batch = two_groups(per_cell=False)
    wide = GaussianParameters(posterior.loc.repeat(1, 2), posterior.log_variance.repeat(1, 2))
    with pytest.raises(ValueError, match="latent_dim: expected 2, got 4"):
        predicted(model, wide, batch, order=4)


@pytest.mark.float32
@pytest.mark.usefixtures("without_figures")
def test_gaps_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--dataset circles --dataset_options.n_samples 80 --pretraining.epochs 1 --training.epochs 1 --quiet"
    small = "--nodes 2,2 --modality.image.encoder.sizes 16 --modality.image.decoder.sizes 16 --read_out.sizes 6"
    svi([*words.split(), *small.split(), "--read_out.n_init=1", f"--output_dir={tmp_path / 'run'}"])
    found = gaps_of_run(tmp_path / "run", n_draws=64, order=8)
    assert (found.trained_with, found.n_samples, found.n_draws) == ("collapsed", 8, 64)
    for name in ("meanfield", "paper"):
        error = found.standard_error[name] + found.quadrature_error
        assert found.measured[name] == pytest.approx(found.predicted[name], abs=5 * error)
    main([str(tmp_path / "run"), "--draws", "2", "--order", "4", "--json", str(tmp_path / "gaps.json")])
    assert "collapsed - meanfield" in capsys.readouterr().out
    assert (tmp_path / "gaps.json").is_file()
