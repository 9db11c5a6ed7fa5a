"""Shapes of spectral lines, one at their centre, by full width at half maximum."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["faddeeva", "gaussian", "lorentzian", "voigt"]

_N_TERMS = 32
_FWHM_PER_SIGMA = 2 * math.sqrt(2 * math.log(2))


def gaussian(distance: Tensor, width: Tensor) -> Tensor:
    """`exp(-4 log 2 (distance / width)²)`."""
    return torch.exp(-4 * math.log(2) * (distance / width).square())


def lorentzian(distance: Tensor, width: Tensor) -> Tensor:
    """`1 / (1 + 4 (distance / width)²)`."""
    return 1 / (1 + 4 * (distance / width).square())


def voigt(distance: Tensor, gaussian_width: Tensor, lorentzian_width: Tensor) -> Tensor:
    """Convolution of both, divided by its value at zero: `Re w(z) / Re w(z_0)`, `z = (distance + i γ) / (σ √2)`.

    Args:
        distance: Distance from the centre.
        gaussian_width: Full width at half maximum of the Gaussian part, 2 √(2 log 2) σ.
        lorentzian_width: That of the Lorentzian part, 2 γ.
    """
    scale = math.sqrt(2) * gaussian_width / _FWHM_PER_SIGMA
    distance, imaginary = torch.broadcast_tensors(distance / scale, 0.5 * lorentzian_width / scale)
    centre = imaginary[..., :1]
    return faddeeva(distance, imaginary).real / faddeeva(torch.zeros_like(centre), centre).real


def faddeeva(real: Float[Tensor, "*b"], imaginary: Float[Tensor, "*b"]) -> Tensor:
    """w(z) = exp(-z²) erfc(-iz) of z in the upper half plane, differentiable.

    J. A. C. Weideman, Computation of the complex error function, SIAM J. Numer. Anal. 31 (1994) 1497-1518, eq. (38).

    Args:
        real: Re z.
        imaginary: Im z >= 0.

    Returns:
        Complex, with an absolute error below 1e-13 in double precision.
    """
    length, coefficients = _weideman(_N_TERMS)
    i_z = torch.complex(-imaginary, real)
    denominator = 1 / (length - i_z)
    ratio = (length + i_z) * denominator
    polynomial = torch.full_like(ratio, coefficients[0])
    for coefficient in coefficients[1:]:
        polynomial = polynomial * ratio + coefficient
    return denominator * (2 * polynomial * denominator + 1 / math.sqrt(math.pi))


@cache
def _weideman(n_terms: int) -> tuple[float, list[float]]:
    """The length L and the coefficients of the polynomial, highest power first."""
    n_points = 4 * n_terms
    length = math.sqrt(n_terms / math.sqrt(2))
    angle = np.arange(-n_points // 2 + 1, n_points // 2) * 2 * np.pi / n_points
    t = length * np.tan(angle / 2)
    values = np.concatenate([[0.0], np.exp(-(t**2)) * (length**2 + t**2)])
    coefficients = np.fft.fft(np.fft.fftshift(values)).real / n_points
    return length, coefficients[1 : n_terms + 1][::-1].tolist()
