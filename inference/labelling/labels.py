"""Clusters named by labels of some samples: a bijection of clusters and cells by counts, not by majority."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from scipy.optimize import linear_sum_assignment

__all__ = ["UNKNOWN", "allowed_cells", "assign_cells", "labelled_mass"]

UNKNOWN = -1
"""Code of a node whose outcome a sample does not tell."""

_SINGLE_LABEL = 0.1
_TIE = 1e-6


def allowed_cells(codes: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """The cells that the labels of each sample leave possible, bool `[n, C]`, row-major over the nodes' outcomes.

    Args:
        codes: Outcome of each node by the labels, `[n, L]`; `UNKNOWN` where there is none.
        outcomes: Number of outcomes of each node, `C_1, ..., C_L`.
    """
    allowed = np.ones((len(codes), 1), dtype=bool)
    for code, count in zip(codes.T, outcomes, strict=True):
        fits = (code[:, None] == np.arange(count)) | (code == UNKNOWN)[:, None]
        allowed = (allowed[:, :, None] & fits[:, None, :]).reshape(len(codes), -1)
    return allowed


def labelled_mass(responsibilities: np.ndarray, codes: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    r"""Soft counts of labelled samples that each cluster would have right as each cell, `[C, C]`.

    $$M_{ck} = \sum_n R_{nc} \Big( 1[\text{all labels of } n \text{ agree with } k]
    + w \sum_{\ell\ \text{labelled}} 1[y_{n\ell} = k_\ell] \Big), \qquad w = 0.1.$$

    The first term is the count of the joint outcome; a sample with labels of some nodes counts for every cell that
    agrees with them, that is, for the marginal of these nodes. The second, single labels, decides between cells that
    the few whole agreements do not tell apart: a cluster without labelled samples of its own is most often beside one
    that has some (docs/names_and_labels.md has the figures). Samples without labels do not count.

    Args:
        responsibilities: R of the clusters, `[n, C]`.
        codes: Outcome of each node by the labels, `[n, L]`; `UNKNOWN` where there is none.
        outcomes: Number of outcomes of each node.
    """
    rows = (codes != UNKNOWN).any(axis=1)
    known, r = codes[rows], responsibilities[rows].astype(np.float64)
    cells = np.stack(np.unravel_index(np.arange(prod(outcomes)), tuple(outcomes)), axis=1)
    single = (known[:, None, :] == cells).sum(axis=2)
    mass: np.ndarray = r.T @ (allowed_cells(known, outcomes) + _SINGLE_LABEL * single)
    return mass


def assign_cells(scores: np.ndarray) -> np.ndarray:
    r"""The bijection π of clusters and cells that maximises $\sum_c S_{c\pi(c)}$ (Hungarian algorithm), `[C]`.

    With labels of some nodes only, every combination of their outcomes has as many slots as the other nodes have joint
    outcomes, and their columns of S are equal: which of them a cluster takes is arbitrary. There, clusters keep their
    numbers as far as they can (a bonus of 1e-6 of the largest score).

    Args:
        scores: S, `[C, C]`, for example that of `labelled_mass`.

    Raises:
        ValueError: Scores that are not square or not finite.
    """
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or not np.isfinite(scores).all():
        raise ValueError(f"scores: expected finite ones, a row per cluster and a column per cell, got {scores.shape}")
    bonus = _TIE * max(float(np.abs(scores).max()), 1.0) / len(scores)
    permutation: np.ndarray = linear_sum_assignment(scores + bonus * np.eye(len(scores)), maximize=True)[1]
    return permutation
