"""One try at a read-out: a mixture whose components are merged into cells, and one Gaussian per cell from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.mixture import GaussianMixture

from inference.clusters.merging import merge_components
from inference.clusters.occupancy import count_occupied, mean_entropy
from inference.clusters.refinement import classification_likelihood, refine

__all__ = ["Attempt", "Candidate", "Fit", "attempt", "sum_by_cell"]


@dataclass(frozen=True)
class Candidate:
    """One mixture that was tried, after merging, on the samples that it was fitted to.

    Attributes:
        size: Number of components before merging, K.
        entropy: Mean entropy of the cell responsibilities in nats (`ReadOut.entropy`).
        n_occupied: Number of occupied cells.
        lower_bound: Log-likelihood per sample of the mixture, on the standardised embedding.
        converged: Did expectation-maximisation converge?
        classification_likelihood: How well one Gaussian per cell explains the cells, in nats per sample.
    """

    size: int
    entropy: float
    n_occupied: int
    lower_bound: float
    converged: bool
    classification_likelihood: float

    def is_clearer_than(self, other: Candidate) -> bool:
        """Whether it occupies no fewer cells than the other, at a lower entropy."""
        return self.n_occupied >= other.n_occupied and self.entropy < other.entropy


class Fit(NamedTuple):
    """A mixture, the cell of each of its components, and its record."""

    mixture: GaussianMixture
    component_cell: np.ndarray
    candidate: Candidate


class Attempt(NamedTuple):
    """Cells of merged components, and one Gaussian per cell started from them (the same where a cell is empty)."""

    merged: Fit
    refined: Fit

    @property
    def rank(self) -> tuple[int, float]:
        """Order of preference, lowest first: most occupied cells, then highest classification likelihood.

        The likelihood is that of the merged cells plus that of the refined ones: the first tells curved groups apart,
        the second tells a clustering from one that merges two groups and splits a third.
        """
        merged, refined = self.merged.candidate, self.refined.candidate
        return -merged.n_occupied, -(merged.classification_likelihood + refined.classification_likelihood)

    @property
    def clearer(self) -> Fit:
        """The refined cells where they are clearer than the merged ones, else the merged ones."""
        return self.refined if self.refined.candidate.is_clearer_than(self.merged.candidate) else self.merged


def attempt(points: np.ndarray, n_cells: int, mixture: GaussianMixture) -> Attempt:
    """Fit a mixture, merge its components into cells, and fit one Gaussian per cell from there.

    Args:
        points: Standardised embedding, `[n, J]`.
        n_cells: Number of cells, C.
        mixture: A mixture that is not fitted yet; its regularisation is used throughout.
    """
    responsibilities = mixture.fit(points).predict_proba(points)
    component_cell = merge_components(responsibilities, n_cells)
    cells = sum_by_cell(responsibilities, component_cell, n_cells)
    merged = Fit(mixture, component_cell, _judge(points, mixture, cells))
    if not cells.sum(0).all():
        return Attempt(merged, merged)
    single = refine(points, cells, mixture.reg_covar)
    return Attempt(merged, Fit(single, np.arange(n_cells), _judge(points, single, single.predict_proba(points))))


def _judge(points: np.ndarray, mixture: GaussianMixture, cells: np.ndarray) -> Candidate:
    return Candidate(
        size=mixture.n_components,
        entropy=mean_entropy(cells),
        n_occupied=count_occupied(cells),
        lower_bound=float(mixture.lower_bound_),
        converged=bool(mixture.converged_),
        classification_likelihood=classification_likelihood(points, cells, mixture.reg_covar),
    )


def sum_by_cell(responsibilities: np.ndarray, component_cell: np.ndarray, n_cells: int) -> np.ndarray:
    """Responsibilities of the cells `[n, C]` from those of their components `[n, K]`."""
    return responsibilities @ np.eye(n_cells, dtype=responsibilities.dtype)[component_cell]
