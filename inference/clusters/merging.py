"""Merging mixture components into cells by how much they overlap (DEMP)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

__all__ = ["merge_components", "misassigned"]


def merge_components(responsibilities: np.ndarray, n_cells: int) -> np.ndarray:
    """Merge the components of a mixture until `n_cells` remain.

    With a_n = argmax_i R_ni and P_ij = sum_{n: a_n = j} R_ni / sum_n R_ni, the estimated probability that a sample
    of component i is assigned to component j, the pair with the largest max(P_ij, P_ji) is merged
    (R_ni + R_nj in place of both), a_n is found anew, and so on. A component without any mass is merged before all
    others: it must not take the place of a cell. Ties (to 12 decimals) go to the pair that stands first.
    Costs O(n K + K^2) per merge.

    Args:
        responsibilities: R, `[n, K]`, rows sum to 1.
        n_cells: Number of cells to keep, C.

    Returns:
        Cell of each component, `[K]`, numbered in the order of each cell's first component; the identity where
        K <= C.

    Reference:
        C. Hennig, Methods for merging Gaussian mixture components, Advances in Data Analysis and Classification 4,
        2010: directly estimated misclassification probabilities (DEMP).
    """
    merged = responsibilities.T.copy()
    cell = np.arange(len(merged))
    while len(merged) > n_cells:
        kept, gone = _closest_pair(misassigned(merged))
        merged[kept] += merged[gone]
        merged = np.delete(merged, gone, axis=0)
        cell[cell == gone] = kept
        cell[cell > gone] -= 1
    return cell


def misassigned(rows: np.ndarray) -> np.ndarray:
    """P `[K, K]`: the share of component i (rows, `[K, n]`) that lies among the samples assigned to j."""
    n_components, n_samples = rows.shape
    assigned = csr_array(
        (np.ones(n_samples), rows.argmax(axis=0), np.arange(n_samples + 1)), shape=(n_samples, n_components)
    )
    mass = rows.sum(axis=1, keepdims=True)
    overlap = np.asarray(rows @ assigned)
    return np.divide(overlap, mass, out=np.full_like(overlap, np.inf), where=mass > 0).round(12)


def _closest_pair(misassigned: np.ndarray) -> tuple[int, int]:
    """The pair i < j with the largest max(P_ij, P_ji)."""
    closeness = np.triu(np.maximum(misassigned, misassigned.T), k=1) + np.tril(np.full_like(misassigned, -1.0))
    kept, gone = np.unravel_index(closeness.argmax(), closeness.shape)
    return int(kept), int(gone)
