"""The scale of a modality: there and back, on arrays and tensors, and what it does to a density."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from causalpima.models.batch import Standardisation

CASES = {
    "identity": Standardisation(-1.3, 2.5),
    "log": Standardisation(0.4, 0.7, "log"),
    "asinh": Standardisation(0.2, 1.9, "asinh", 3.0),
    "nothing": Standardisation(),
    "offset": Standardisation(0.3, 2.5, offset=2.0**30),
}
every = pytest.mark.parametrize("scale", list(CASES.values()), ids=list(CASES))


def values(scale: Standardisation) -> np.ndarray:
    """From a hundredth to a thousand; of both signs where the transform takes them, with zero."""
    sizes = np.logspace(-2, 3, 31)
    both = sizes if scale.transform == "log" else np.concatenate([-sizes, [0.0], sizes])
    return both + (scale.offset or 0.0)


@every
def test_there_and_back(scale: Standardisation) -> None:
    x = values(scale)
    np.testing.assert_allclose(scale.invert(scale.apply(x)), x, rtol=1e-12, atol=1e-12)


@every
def test_tensors_and_arrays_give_the_same(scale: Standardisation) -> None:
    x = values(scale)
    y = scale.apply(x)
    pairs = [(scale.apply, x), (scale.invert, y), (scale.log_derivative, x), (scale.transformed, x)]
    for function, argument in pairs:
        found = function(torch.from_numpy(argument))
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.numpy(), function(argument), rtol=1e-12, atol=1e-12)


def test_the_formulas() -> None:
    x = np.array([0.5, 7.0])
    np.testing.assert_allclose(CASES["identity"].apply(x), (x + 1.3) / 2.5)
    np.testing.assert_allclose(CASES["log"].apply(x), (np.log(x) - 0.4) / 0.7)
    np.testing.assert_allclose(CASES["asinh"].apply(x), (np.arcsinh(x / 3.0) - 0.2) / 1.9)
    np.testing.assert_array_equal(CASES["nothing"].apply(x), x)
    np.testing.assert_array_equal(CASES["offset"].apply(x + 2.0**30), (x - 0.3) / 2.5)


@every
def test_log_derivative_is_that_of_autograd(scale: Standardisation) -> None:
    x = torch.from_numpy(values(scale)).requires_grad_()
    (slope,) = torch.autograd.grad(scale.apply(x).sum(), x)
    torch.testing.assert_close(scale.log_derivative(x.detach()), slope.abs().log(), rtol=1e-10, atol=1e-10)


def test_a_gaussian_logarithm_is_a_lognormal_value() -> None:
    """SciPy's density of x is ours of y = (log x - μ) / σ plus log |dy/dx|."""
    scale, x = CASES["log"], np.array([0.2, 1.0, 9.0])
    ours = stats.norm.logpdf(scale.apply(x)) + scale.log_derivative(x)
    np.testing.assert_allclose(ours, stats.lognorm.logpdf(x, s=0.7, scale=np.exp(0.4)))


def test_asinh_is_linear_below_the_knee_and_logarithmic_above_it() -> None:
    scale = Standardisation(transform="asinh", knee=3.0)
    assert scale.apply(np.array(3e-4)) == pytest.approx(1e-4, rel=1e-8)
    assert scale.apply(np.array(3e6)) - scale.apply(np.array(3e5)) == pytest.approx(np.log(10), rel=1e-8)
    assert scale.apply(np.array(-3e6)) == -scale.apply(np.array(3e6))
