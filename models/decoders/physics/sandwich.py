"""Covariance of least-squares estimates, clustered by sample, where the data determine them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["Sandwich", "sandwich"]

_SMALLEST_EIGENVALUE, _SMALLEST_SHARE, _SMALLEST_PART = 1e-9, 1e-6, 1e-3


@dataclass(frozen=True)
class Sandwich:
    """Covariance of the parameters, and what is not determined.

    Attributes:
        covariance: `[P, P]`, zero for parameters that were left out, and along directions that nothing determines.
        is_identified: Which parameters the data determine, `[P]`.
        null: Directions of the parameters that change no measured curve, `[P, K]`.
        scale: Change of each parameter that changes the measured curves by one in sum of squares, `[P]`; zero for
            parameters that were left out.
    """

    covariance: np.ndarray
    is_identified: np.ndarray
    null: np.ndarray
    scale: np.ndarray

    def curve_errors(self, jacobian: Float[np.ndarray, "D P"]) -> Float[np.ndarray, " D"]:
        """Standard errors of a function of the parameters; NaN where it hangs on what nothing determines.

        Args:
            jacobian: Its derivatives.
        """
        errors = np.sqrt(np.einsum("dp,pq,dq->d", jacobian, self.covariance, jacobian).clip(0))
        hidden = np.linalg.norm(jacobian @ self.null, axis=-1)
        return np.where(hidden > _SMALLEST_PART * np.linalg.norm(jacobian * self.scale, axis=-1), np.nan, errors)


def sandwich(
    bread: Float[np.ndarray, "P P"], meat: Float[np.ndarray, "P P"], is_free: Bool[np.ndarray, " P"]
) -> Sandwich:
    r"""`H⁺ M H⁺` of the free parameters.

    The eigenvalues of H are judged after scaling it to a unit diagonal, so that units do not matter.

    Args:
        bread: H = Σ_n γ_n J^T W_n J.
        meat: M = Σ_g s_g s_g^T, with the scores s_g = Σ_{n in g} γ_n J^T W_n r_n of each independent group.
        is_free: Parameters that are not at a bound; the others are taken as given.
    """
    diagonal = np.diag(bread)
    scale = np.where(is_free, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(bread * scale[:, None] * scale)
    is_determined = values > _SMALLEST_EIGENVALUE * max(values.max(), np.finfo(np.float64).tiny)
    root = scale[:, None] * vectors[:, is_determined]
    inverse = (root / values[is_determined]) @ root.T
    null = vectors[:, ~is_determined]
    is_identified = is_free & (np.square(null).sum(-1) < _SMALLEST_SHARE)
    return Sandwich(inverse @ meat @ inverse, is_identified, scale[:, None] * null, scale)
