"""Standard errors and intervals of physical parameters, from batches of samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.functional import jacobian

from causalpima.models.decoders.physics.decoder import PhysicsDecoder

__all__ = [
    "EstimateAccumulator",
    "PhysicalEstimates",
    "Sandwich",
    "sandwich",
]


# Physical parameters of every cell with their uncertainty, as plain arrays.


@dataclass(frozen=True, eq=False)
class PhysicalEstimates:
    """What a physics decoder found, in the units of the data.

    Numbers that the data do not determine are NaN, and `status` says why: `too few samples` (fewer than two
    independent ones), `at bound` (the optimum lies on a bound, or peaks and kinks coincide), `not identified` (other
    values of the parameter give the same curve where it was measured).

    Attributes:
        names: Names of the parameters.
        units: Their units.
        value: Estimates, `[C, P]`.
        standard_error: Standard errors, `[C, P]`.
        lower: Lower ends of the intervals, `[C, P]`; inside the bounds.
        upper: Upper ends, `[C, P]`.
        status: `ok` or why there is no interval, strings `[C, P]`.
        curve: The law at the estimates, `[C, D]`.
        curve_lower: Lower ends of the pointwise intervals of the law (not of new measurements), `[C, D]`.
        curve_upper: Upper ends, `[C, D]`.
        effective_samples: Number of independent samples behind each cell, `[C]`.
        level: Probability of the intervals.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray
    curve: np.ndarray
    curve_lower: np.ndarray
    curve_upper: np.ndarray
    effective_samples: np.ndarray
    level: float


# Covariance of least-squares estimates, clustered by sample, where the data determine them.


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


class EstimateAccumulator:
    r"""Sums over samples from which the uncertainty of each cell's parameters follows.

    Sandwich covariance of the weighted least-squares estimate û_c, clustered by sample, or by group where samples
    belong together (replicates of a specimen):

        Cov(û_c) = G/(G-1) H_c⁻¹ (Σ_g s_gc s_gc^T) H_c⁻¹,  H_c = Σ_n γ_nc J_c^T W_n J_c,
        s_gc = Σ_{n in g} γ_nc J_c^T W_n (x_n - law_c)

    with γ = q(N|X), W_n the measured elements of sample n, and G the effective number of groups in the cell,
    (Σ_g a_g)² / Σ_g a_g², a_g = Σ_{n in g} γ_nc (Kish). It holds whatever the correlation of the elements of a sample
    (σ̂² cancels). Intervals use Student's t with G - 1 degrees of freedom, exact for linear laws without gaps; they are
    symmetric on the unconstrained scale of each parameter and so respect its bounds. q(N|X) is taken as given: where
    clusters overlap, the intervals are too narrow.

    Memory: `[C, P, P]`, and with groups `[groups, C, P]`.

    Args:
        decoder: After training and `update_cells`, with `source` cell.

    Raises:
        ValueError: The parameters of the decoder depend on Z.
    """

    def __init__(self, decoder: PhysicsDecoder) -> None:
        if decoder.source != "cell":
            raise ValueError(
                f'source: expected "cell" for estimates per cell, got "{decoder.source}", where they change with Z'
            )
        self._curve = decoder.curve
        self._value = decoder.table.detach().double()
        fitted, jacobian = self._curve.with_jacobian(self._value)
        self._fitted, self._jacobian = _array(fitted), _array(jacobian)
        n_cells, n_positions, n_parameters = self._jacobian.shape
        self._weight = np.zeros((n_cells, n_positions))
        self._meat = np.zeros((n_cells, n_parameters, n_parameters))
        self._shares, self._squared_shares = np.zeros(n_cells), np.zeros(n_cells)
        self._rows: dict[Hashable, int] = {}
        self._group_scores = np.zeros((0, n_cells, n_parameters + 1))

    def add(
        self,
        values: Float[Tensor, "B D"],
        observed: Bool[Tensor, "B D"] | None,
        responsibilities: Float[Tensor, "B C"],
        groups: Sequence[Hashable] | np.ndarray | None = None,
    ) -> None:
        """Take in a batch.

        Args:
            values: Curves on the scale of the model; any value where they are not measured.
            observed: Which elements are measured; None: all.
            responsibilities: q(N|X).
            groups: Group of each sample; None: every sample of the batch is a group of its own.
        """
        share = _array(responsibilities)
        measured = np.ones(values.shape) if observed is None else _array(observed)
        share = share * measured.any(-1, keepdims=True)
        self._weight += share.T @ measured
        scores = self._scores(np.where(measured > 0, _array(values), 0.0), measured) * share[..., None]
        with_share = np.concatenate([scores, share[..., None]], -1)
        if groups is None:
            self._add_independent(with_share)
        else:
            self._add_to_groups(with_share, np.asarray(groups).tolist())

    def _scores(self, values: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """J_c^T W_n (x_n - law_c), `[B, C, P]`."""
        of_data = np.einsum("bd,cdp->bcp", values, self._jacobian, optimize=True)
        return of_data - np.einsum("bd,cdp->bcp", measured, self._fitted[..., None] * self._jacobian, optimize=True)

    def _add_independent(self, scores: np.ndarray) -> None:
        self._meat += _meat(scores)
        self._shares += scores[..., -1].sum(0)
        self._squared_shares += np.square(scores[..., -1]).sum(0)

    def _add_to_groups(self, scores: np.ndarray, groups: Iterable[Hashable]) -> None:
        rows = [self._rows.setdefault(group, len(self._rows)) for group in groups]
        missing = len(self._rows) - len(self._group_scores)
        self._group_scores = np.pad(self._group_scores, ((0, missing), (0, 0), (0, 0)))
        np.add.at(self._group_scores, rows, scores)

    def estimate(self, level: float = 0.95) -> PhysicalEstimates:
        """Estimates, standard errors and intervals from everything that was added.

        Args:
            level: Probability of the intervals.
        """
        curve, vector = self._curve, self._curve.parameters_of_law
        n_groups = self._effective_groups()
        value = _array(vector.to_physical(self._value))
        at_bound = vector.is_at_bound(value)
        found = self._sandwiches(n_groups, ~at_bound)
        status = _status(n_groups, at_bound, np.stack([one.is_identified for one in found]))
        quantile = scipy.stats.t.ppf(0.5 + level / 2, np.maximum(n_groups - 1, 1e-3))[:, None]
        errors, lower, upper = self._intervals(np.stack([one.covariance for one in found]), quantile)
        errors, lower, upper = (np.where(status == "ok", array, np.nan) for array in (errors, lower, upper))
        curve_lower, curve_upper = self._band(found, np.where(n_groups[:, None] < 2, np.nan, quantile))
        return PhysicalEstimates(
            names=vector.names,
            units=tuple(parameter.unit for parameter in vector.parameters),
            value=value,
            standard_error=errors,
            lower=lower,
            upper=upper,
            status=status,
            curve=_array(curve.in_unit(self._value)),
            curve_lower=curve_lower,
            curve_upper=curve_upper,
            effective_samples=n_groups,
            level=level,
        )

    def _effective_groups(self) -> np.ndarray:
        shares = self._shares + self._group_scores[..., -1].sum(0)
        squared = self._squared_shares + np.square(self._group_scores[..., -1]).sum(0)
        return np.divide(shares**2, squared, out=np.zeros_like(shares), where=squared > 0)

    def _sandwiches(self, n_groups: np.ndarray, is_free: np.ndarray) -> list[Sandwich]:
        correction = np.divide(n_groups, n_groups - 1, out=np.ones_like(n_groups), where=n_groups > 1)
        meat = correction[:, None, None] * (self._meat + _meat(self._group_scores))
        bread = np.einsum("cdp,cd,cdq->cpq", self._jacobian, self._weight, self._jacobian, optimize=True)
        return [sandwich(*of_cell) for of_cell in zip(bread, meat, is_free, strict=True)]

    def _intervals(self, covariance: np.ndarray, quantile: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Standard errors in the parameters' units, and intervals symmetric on each parameter's own scale."""
        vector = self._curve.parameters_of_law
        errors = _errors(vector.to_physical, self._value, covariance)
        centre = _array(vector.each_to_unconstrained(vector.to_physical(self._value)))
        half = quantile * _errors(
            lambda value: vector.each_to_unconstrained(vector.to_physical(value)), self._value, covariance
        )
        lower, upper = (_array(vector.each_to_physical(torch.as_tensor(centre + side * half))) for side in (-1, 1))
        return errors, lower, upper

    def _band(self, found: Sequence[Sandwich], quantile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the pointwise intervals of the law, in the unit of the data."""
        half = quantile * np.stack([one.curve_errors(rows) for one, rows in zip(found, self._jacobian, strict=True)])
        lower, upper = (_array(self._curve.standardisation.invert(self._fitted + side * half)) for side in (-1, 1))
        return lower, upper


def _array(tensor: Any) -> np.ndarray:
    return tensor.detach().double().cpu().numpy() if isinstance(tensor, Tensor) else np.asarray(tensor)


def _meat(scores: np.ndarray) -> np.ndarray:
    """Σ_g s_g s_g^T of scores `[G, C, P + 1]`, whose last column is the share."""
    return np.einsum("gcp,gcq->cpq", scores[..., :-1], scores[..., :-1], optimize=True)


def _status(n_groups: np.ndarray, at_bound: np.ndarray, is_identified: np.ndarray) -> np.ndarray:
    few = np.broadcast_to(n_groups[:, None] < 2, at_bound.shape)
    reasons = ["too few samples", "at bound", "not identified"]
    return np.select([few, at_bound, ~is_identified], reasons, "ok")


def _errors(function: Callable[[Tensor], Tensor], value: Tensor, covariance: np.ndarray) -> np.ndarray:
    """Standard errors of a function of the parameters, by the delta method, `[C, P]`."""
    of_sums = jacobian(lambda rows: function(rows).sum(0), value)  # `[P, C, P]`: a cell's values depend on it alone
    derivatives = _array(of_sums).swapaxes(0, 1)
    return np.sqrt(np.einsum("cpq,cqr,cpr->cp", derivatives, covariance, derivatives).clip(0))
