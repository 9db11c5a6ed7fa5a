"""A model in closed form: predictions given some modalities are conditionals of one Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import multivariate_normal, norm
from small_runs import linear_gaussian_run

from causalpima.inference.analyses.predict import PredictionOptions, predict
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.data.multimodal import MultimodalData

# z -> a, z -> b, with two latent dimensions that both see.
WEIGHTS = {
    "a": 1.5 * torch.tensor([[0.6, -0.8], [0.8, 0.6], [0.0, 0.0]]),
    "b": 0.7 * torch.tensor([[1.0, 0.0], [0.0, -1.0]]),
}
OFFSETS = {"a": torch.tensor([1.0, -2.0, 0.5]), "b": torch.tensor([3.0, 0.0])}
DEVIATION = {"a": 0.8, "b": 0.5}
DRAWS = 20_000


def joint() -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a and b together, `[5]` and `[5, 5]`."""
    weight = np.concatenate([WEIGHTS["a"].numpy(), WEIGHTS["b"].numpy()])
    noise = np.repeat([DEVIATION["a"] ** 2, DEVIATION["b"] ** 2], [3, 2])
    return np.concatenate([OFFSETS["a"], OFFSETS["b"]]), weight @ weight.T + np.diag(noise)


def conditional(target: slice, given: slice, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of some elements given others."""
    mean, covariance = joint()
    gain = covariance[target, given] @ np.linalg.inv(covariance[given, given])
    return mean[target] + gain @ (value - mean[given]), covariance[target, target] - gain @ covariance[given, target]


A, B = slice(0, 3), slice(3, 5)
VALUES = np.random.default_rng(0).multivariate_normal(*joint(), size=4).astype(np.float32)


def prediction(has_a: bool, has_b: bool, draws: int = DRAWS, interval: float = 0.9) -> xr.Dataset:
    fitted = linear_gaussian_run(WEIGHTS, OFFSETS, DEVIATION, 2)
    present = {"a": np.full(4, has_a), "b": np.full(4, has_b)}
    values = {"a": VALUES[:, A], "b": VALUES[:, B]}
    data = MultimodalData(
        "new",
        {m: np.where(present[m][:, None], v, 0).astype(np.float32) for m, v in values.items()},
        present,
        {"a": "vector", "b": "vector"},
    )
    return predict(fitted, fit_to_run(data, fitted), PredictionOptions(draws, 0, interval))


def test_hidden_modality_is_the_conditional_of_the_joint_model() -> None:
    found = prediction(has_a=True, has_b=False)
    for row in range(4):
        mean, covariance = conditional(B, A, VALUES[row, A])
        deviation = np.sqrt(np.diag(covariance))
        assert found.b_mean[row].to_numpy() == pytest.approx(mean, abs=4 * deviation.max() / np.sqrt(DRAWS))
        assert found.b_std[row].to_numpy() == pytest.approx(deviation, rel=4 / np.sqrt(2 * DRAWS))


@pytest.mark.parametrize("interval", [0.5, 0.9, 0.99])
def test_interval_is_that_of_the_conditional(interval: float) -> None:
    found = prediction(has_a=True, has_b=False, interval=interval)
    for row in range(4):
        mean, covariance = conditional(B, A, VALUES[row, A])
        deviation = np.sqrt(np.diag(covariance))
        for name, p in (("b_lower", (1 - interval) / 2), ("b_upper", (1 + interval) / 2)):
            exact = norm.ppf(p, mean, deviation)
            error = np.sqrt(p * (1 - p) / DRAWS) / norm.pdf(norm.ppf(p)) * deviation
            assert (np.abs(found[name][row] - exact) < 4 * error).all()


def test_log_likelihood_is_exact_where_the_guide_is() -> None:
    mean, covariance = joint()
    found = prediction(has_a=True, has_b=True, draws=3)
    log_joint = multivariate_normal(mean, covariance).logpdf(VALUES)
    log_a = multivariate_normal(mean[A], covariance[A, A]).logpdf(VALUES[:, A])
    log_b = multivariate_normal(mean[B], covariance[B, B]).logpdf(VALUES[:, B])
    assert found.log_likelihood.to_numpy() == pytest.approx(log_joint, abs=1e-6)
    assert found.a_log_likelihood.to_numpy() == pytest.approx(log_joint - log_b, abs=1e-6)
    assert found.b_log_likelihood.to_numpy() == pytest.approx(log_joint - log_a, abs=1e-6)


def test_log_likelihood_of_a_single_modality_is_its_marginal() -> None:
    mean, covariance = joint()
    found = prediction(has_a=True, has_b=False, draws=3)
    log_a = multivariate_normal(mean[A], covariance[A, A]).logpdf(VALUES[:, A])
    assert found.log_likelihood.to_numpy() == pytest.approx(log_a, abs=1e-6)
    assert found.a_log_likelihood.to_numpy() == pytest.approx(log_a, abs=1e-6)
    assert np.isnan(found.b_log_likelihood).all()


def test_sample_without_any_modality_is_predicted_from_the_prior() -> None:
    mean, covariance = joint()
    found = prediction(has_a=False, has_b=False)
    deviation = np.sqrt(np.diag(covariance))
    for name, part in (("a", A), ("b", B)):
        assert (np.abs(found[f"{name}_mean"] - mean[part]) < 4 * deviation[part] / np.sqrt(DRAWS)).all()
        assert found[f"{name}_std"][0].to_numpy() == pytest.approx(deviation[part], rel=4 / np.sqrt(2 * DRAWS))
    assert found.latent_scale.to_numpy() == pytest.approx(1)
    assert np.isnan(found.log_likelihood).all()


def test_the_oracle_tells_another_model_apart() -> None:
    """Negative control: without what a says of b, means and deviations are far from the conditional's."""
    found = prediction(has_a=False, has_b=False)
    means = [conditional(B, A, VALUES[row, A])[0] for row in range(4)]
    _, covariance = conditional(B, A, VALUES[0, A])
    assert np.abs(found.b_mean - np.array(means)).to_numpy().max() > 20 / np.sqrt(DRAWS)
    assert (found.b_std[0].to_numpy() / np.sqrt(np.diag(covariance)) > 1.05).all()
