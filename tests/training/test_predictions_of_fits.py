"""Predictions of a trained run for its own samples agree with what the run itself reported."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.analyses.predict import read_samples
from causalpima.inference.analyses.predictive_moments import Noise, draw
from causalpima.inference.result import rebuild_result
from causalpima.inference.run import Run

pytestmark = pytest.mark.float32

_RUN_DRAWS = 64


@pytest.mark.parametrize("changes", [{}, {"objective": "meanfield"}, {"decoder__per_cell": True}], ids=str)
def test_responsibilities_are_those_of_the_run(changes: dict[str, object]) -> None:
    run = Run(tiny_samples(80), settings(**changes))
    run.train()
    result = run.finish()
    assert result.arrays is not None
    found = result.predict(tiny_samples(80), draws=2000)
    fitted = rebuild_result(result)
    torch.manual_seed(0)
    with torch.no_grad():
        _, batch = next(read_samples(fitted, tiny_samples(80)).batches(80, fitted.model.mixture.component_loc))
        drawn = draw(fitted, batch, Noise.make(500, fitted.model))
    error = drawn.cell_probability.std(0).numpy() * np.sqrt(1 / _RUN_DRAWS + 1 / 2000)
    difference = np.abs(found.responsibilities.to_numpy() - result.responsibilities().to_numpy())
    assert (difference < 5 * error + 1e-4).all()
    assert found.latent_loc.to_numpy() == pytest.approx(result.arrays.latent_loc, abs=1e-5)
    assert found.latent_scale.to_numpy() == pytest.approx(result.arrays.latent_scale, abs=1e-5)


def test_prediction_leaves_the_process_alone() -> None:
    run = Run(tiny_samples(80), settings())
    run.train()
    result = run.finish()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    result.predict(tiny_samples(80))
    assert torch.equal(torch.rand(3), expected)


def test_reported_variance_is_used() -> None:
    """With a floor far above the noise, the predicted deviation is that of the residuals all the same."""
    run = Run(tiny_samples(300), settings(decoder__variance_floor=0.5, training__epochs=20, pretraining__epochs=20))
    run.train()
    result = run.finish()
    data = tiny_samples(300)
    found = result.predict(data)
    residual = np.sqrt(np.mean((found.spectrum_mean.to_numpy() - data.modalities["spectrum"]) ** 2))
    scale = run.modalities["spectrum"].standardisation.scale
    assert np.mean(found.spectrum_std) < 0.9 * np.sqrt(0.5) * scale
    assert np.mean(found.spectrum_std) == pytest.approx(residual, rel=0.3)
