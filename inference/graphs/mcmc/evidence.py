r"""Likelihood of p(N) for samples that are seen through a mixture with fixed components, N summed out.

$\log L(A) = \sum_n \log \sum_c A_c\, l_{nc}$. Rows that are equal, as most are where clusters are clear, are counted
once.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["CellEvidence"]

# Shares of a row below this are rounding errors of float64 beside the rest.
_NEGLIGIBLE = 1e-17


class CellEvidence:
    """The data as a function of p(N).

    Args:
        log_likelihood: l, log p(x_n | c) up to a constant per sample, `[n, C]`.
        sample_weight: How much each sample counts, `[n]`; default 1.

    Attributes:
        weight: exp l of each distinct row, relative to its largest entry, `[R, C]`.
        multiplicity: How many samples have this row, `[R]`, or the sum of their weights.

    Raises:
        ValueError: A sample that belongs to no cell.
    """

    def __init__(self, log_likelihood: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        highest = log_likelihood.max(1, keepdims=True)
        if log_likelihood.ndim != 2 or not np.isfinite(highest).all():
            raise ValueError("log_likelihood: expected [sample, cell] with a finite entry in every row, got none")
        weight = np.exp(log_likelihood - highest, dtype=np.float64)
        weight[weight < _NEGLIGIBLE] = 0.0
        counted = np.ones(len(weight)) if sample_weight is None else sample_weight
        rows, row = np.unique(weight, axis=0, return_inverse=True)
        self.weight = torch.from_numpy(rows)
        self.multiplicity = torch.from_numpy(np.bincount(row.reshape(-1), counted))
        self.offset = float(counted @ highest[:, 0])

    @property
    def n_samples(self) -> float:
        """Number of samples, or the sum of their weights."""
        return float(self.multiplicity.sum())

    def log_likelihood(self, log_joint: Tensor) -> Tensor:
        """log L, `[*b]`, of log p(N) over the cells, `[*b, C]`."""
        evidence = log_joint.exp() @ self.weight.T
        return evidence.log() @ self.multiplicity + self.offset

    def responsibilities(self, joint: Tensor) -> Tensor:
        """p(c | x_n) of each distinct row, `[R, C]`, under p(N) `[C]`."""
        r = joint * self.weight
        return r / r.sum(1, keepdim=True)

    def mean_joint(self, n_steps: int = 500) -> Tensor:
        """p(N) without a graph, `[C]`: EM from the uniform one, with one sample's worth of uniform cells added."""
        n_cells = self.weight.shape[1]
        joint = torch.full((n_cells,), 1 / n_cells, dtype=torch.float64)
        for _ in range(n_steps):
            counts = self.multiplicity @ self.responsibilities(joint)
            before, joint = joint, (counts + 1 / n_cells) / (self.n_samples + 1)
            if float((joint - before).abs().max()) < 1e-9:
                break
        return joint
