"""The cells that occur and the levels that each modality tells apart, as a fit found them; and the count from there."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import product

import numpy as np
from scipy.sparse.csgraph import connected_components

from inference.clusters.merging import misassigned
from inference.clusters.occupancy import cell_sizes, occupied
from inference.identifiability.recount import Recount, recount

__all__ = ["LARGEST_OVERLAP", "alike_levels", "recount_found"]

LARGEST_OVERLAP = 0.25
"""Two levels are alike if this share of one of them, or more, lies among the samples assigned to the other."""


def recount_found(
    outcomes: Sequence[int],
    visible: Sequence[Collection[int]] | None,
    cells: np.ndarray,
    levels: Sequence[np.ndarray],
    *,
    labelled: Collection[int] = (),
) -> Recount:
    """Count the labellings that remain of a fit, with the cells that occur and the levels that modalities tell apart.

    Args:
        outcomes: Outcomes of each node, `[L]`.
        visible: Nodes that each modality sees, by position; None: all modalities see all, and count as one.
        cells: q(N|X) of the cells, row-major over the nodes, `[n, C]`.
        levels: For each modality the posterior of its levels given this modality alone, row-major over the nodes that
            it sees in the order of the nodes, `[n_m, K_m]`; of samples that have the modality.
        labelled: Nodes whose outcome is known for every cell.

    Raises:
        ValueError: Posteriors of other numbers of cells or levels than the nodes have.
    """
    sets = [range(len(outcomes))] if visible is None else [sorted(nodes) for nodes in visible]
    _check("cells", cells, math.prod(outcomes))
    if len(levels) != len(sets):
        raise ValueError(f"levels: expected one posterior for each of {len(sets)} modalities, got {len(levels)}")
    for posterior, nodes in zip(levels, sets, strict=True):
        _check("levels", posterior, math.prod(outcomes[node] for node in nodes))
    every = list(product(*map(range, outcomes)))
    there = [every[c] for c in np.flatnonzero(occupied(cell_sizes(cells)))]
    groups = [alike_levels(posterior) for posterior in levels]
    found = [
        [int(group[_level(cell, nodes, outcomes)]) for cell in there] for group, nodes in zip(groups, sets, strict=True)
    ]
    return recount(outcomes, visible, there, found, labelled=labelled)


def alike_levels(posterior: np.ndarray) -> np.ndarray:
    """Groups of levels that are not told apart: those connected by an overlap of `LARGEST_OVERLAP` or more.

    The overlap of levels i and j is max(P_ij, P_ji) with P_ij the share of i that lies among the samples assigned to j
    (as in `merge_components`). Levels without mass are in groups of their own: no occupied cell has them.

    Args:
        posterior: Of the levels, `[n, K]`, rows sum to 1.

    Returns:
        Number of the group of each level, `[K]`.
    """
    overlap = np.where(posterior.sum(0)[:, None] > 0, misassigned(posterior.T), 0.0)
    return connected_components(np.maximum(overlap, overlap.T) >= LARGEST_OVERLAP, directed=False)[1]


def _check(name: str, posterior: np.ndarray, expected: int) -> None:
    if posterior.ndim != 2 or posterior.shape[1] != expected:
        raise ValueError(f"{name}: expected a posterior of shape [n, {expected}], got {posterior.shape}")


def _level(cell: Sequence[int], nodes: Sequence[int], outcomes: Sequence[int]) -> int:
    """Number of the visible combination, row-major."""
    return int(np.ravel_multi_index([cell[n] for n in nodes], [outcomes[n] for n in nodes]))
