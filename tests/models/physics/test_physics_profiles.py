"""Line shapes against SciPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.special import voigt_profile, wofz
from torch import Tensor

from causalpima.models.decoders.physics import profiles


def test_faddeeva_is_that_of_scipy() -> None:
    real, imaginary = torch.meshgrid(
        torch.linspace(-40, 40, 161), torch.cat([torch.zeros(1), torch.logspace(-9, 3, 40)]), indexing="ij"
    )
    expected = wofz(real.numpy() + 1j * imaginary.numpy())
    np.testing.assert_allclose(profiles.faddeeva(real, imaginary).numpy(), expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("widths", [(1.0, 1.0), (3.0, 0.01), (0.02, 2.0)], ids=str)
def test_voigt_is_that_of_scipy(widths: tuple[float, float]) -> None:
    distance = torch.linspace(-7, 7, 101)
    sigma, gamma = widths[0] / (2 * np.sqrt(2 * np.log(2))), widths[1] / 2
    expected = voigt_profile(distance.numpy(), sigma, gamma) / voigt_profile(0.0, sigma, gamma)
    found = profiles.voigt(distance, *(torch.tensor([width]) for width in widths))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("shape", [profiles.gaussian, profiles.lorentzian])
def test_width_is_the_full_width_at_half_maximum(shape: Callable[[Tensor, Tensor], Tensor]) -> None:
    values = shape(torch.tensor([-1.5, 0.0, 1.5]), torch.tensor([3.0]))
    torch.testing.assert_close(values, torch.tensor([0.5, 1.0, 0.5]))


def test_voigt_has_derivatives() -> None:
    inputs = [torch.linspace(-3, 3, 7), torch.tensor([0.7]), torch.tensor([0.4])]
    assert torch.autograd.gradcheck(profiles.voigt, [tensor.requires_grad_() for tensor in inputs])
