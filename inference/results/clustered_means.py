"""Means over the samples of each cell, with standard errors that know which samples belong together."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from scipy import stats

__all__ = ["CellMeans", "ClusteredMeans"]


class CellMeans(NamedTuple):
    """Means of Q quantities in C cells with 95 % intervals, `[C, Q]` each; `effective` groups per cell, `[C]`."""

    mean: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    effective: np.ndarray


class ClusteredMeans:
    r"""Sums over batches from which weighted means and their clustered standard errors follow.

    `m_c = Σ_n γ_nc x_nc / Σ_n γ_nc`, `Var = G/(G-1) Σ_g (Σ_{n in g} γ_nc (x_nc - m_c))² / (Σ_n γ_nc)²` with G the
    effective number of groups, `(Σ_g a_g)² / Σ_g a_g²`, `a_g = Σ_{n in g} γ_nc` (Kish); Student's t with G - 1 degrees
    of freedom. Fewer than two effective groups give NaN.
    """

    def __init__(self) -> None:
        self._shift: np.ndarray | None = None
        self._sums: np.ndarray | None = None
        self._squares: np.ndarray | None = None
        self._groups: dict[Hashable, np.ndarray] = {}

    def add(self, values: np.ndarray, share: np.ndarray, groups: np.ndarray | None = None) -> None:
        """Take in a batch.

        Args:
            values: x, `[B, C, Q]`.
            share: γ, `[B, C]`.
            groups: Group of each sample `[B]`; None: every sample is its own.
        """
        if self._shift is None:  # close to the means, so that differences of squares lose no digits
            self._shift = values.mean(0)
        weighted = share[..., None] * np.concatenate([values - self._shift, np.ones_like(values[..., :1])], axis=-1)
        self._sums = _plus(self._sums, weighted.sum(0))
        if groups is None:
            self._squares = _plus(self._squares, _products(weighted))
            return
        for group in np.unique(groups).tolist():
            self._groups[group] = _plus(self._groups.get(group), weighted[groups == group].sum(0))

    def estimate(self, level: float = 0.95) -> CellMeans:
        """Means, standard errors and intervals of everything that was added."""
        assert self._sums is not None, "nothing was added"
        assert self._shift is not None, "nothing was added"
        grouped = _products(np.stack(list(self._groups.values()))) if self._groups else None
        squares = _plus(self._squares, 0.0) if grouped is None else _plus(self._squares, grouped)
        mass = self._sums[:, -1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self._sums[:, :-1] / mass
            of_values, cross, of_shares = squares
            residual = (of_values - 2 * mean * cross + mean**2 * of_shares).clip(0)
            effective = np.where(of_shares > 0, mass**2 / of_shares, 0.0)[:, 0]
            correction = np.where(effective > 1, effective / (effective - 1), np.nan)[:, None]
            error = np.where(effective[:, None] >= 2, np.sqrt(correction * residual) / mass, np.nan)
        half = stats.t.ppf(0.5 + level / 2, np.maximum(effective - 1, 1e-3))[:, None] * error
        mean = mean + self._shift
        return CellMeans(mean, error, mean - half, mean + half, effective)


def _products(weighted: np.ndarray) -> np.ndarray:
    """Sums over rows of (γx)², γx γ and γ², `[3, C, Q]`, from rows of γx and, last, γ."""
    x, gamma = weighted[..., :-1], weighted[..., -1:]
    return np.stack([(x * x).sum(0), (x * gamma).sum(0), np.broadcast_to((gamma * gamma).sum(0), x.shape[1:])])


def _plus(total: np.ndarray | None, part: np.ndarray | float) -> np.ndarray:
    return np.asarray(part) if total is None else total + part
