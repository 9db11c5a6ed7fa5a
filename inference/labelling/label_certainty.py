"""How far labels settle which cluster is which cell: agreement with labels left out, and the next best labelling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from inference.labelling.labels import UNKNOWN, assign_cells, labelled_mass

__all__ = [
    "LEAST_GAP",
    "Certainty",
    "certainty",
    "exchange_gaps",
    "is_beyond_chance",
    "left_out_agreement",
    "unlabelled_combinations",
]

LEAST_GAP = 1.0
"""Labels by which a labelling must be ahead of another one to be told from it: a single label may be wrong."""

_MOST_LEFT_OUT_SINGLY = 100
_FEWEST_TESTED = 20
_LEVEL = 0.01
_FOLDS = 10


class Certainty(NamedTuple):
    """What labels leave open.

    Attributes:
        gap: Labels by which the best labelling is ahead of the next, two clusters exchanged; None: there is none.
        unsettled_nodes: Nodes that two clusters differ in whose exchange costs less than `LEAST_GAP`, bool `[L]`.
        unsettled_cells: Cells of such clusters, ascending.
    """

    gap: float | None
    unsettled_nodes: np.ndarray
    unsettled_cells: np.ndarray


def exchange_gaps(scores: np.ndarray, permutation: np.ndarray) -> np.ndarray:
    r"""Cost of exchanging the cells of two clusters: $S_{c\pi(c)} + S_{d\pi(d)} - S_{c\pi(d)} - S_{d\pi(c)}$; `[C, C]`.

    Args:
        scores: S, those of `labelled_mass`: a labelled sample on the right side of an exchange counts for one, and
            0.1 more for each single label.
        permutation: π, the cell of every cluster.
    """
    as_cell_of = scores[:, permutation]
    own = np.diag(as_cell_of)
    gaps: np.ndarray = own[:, None] + own - as_cell_of - as_cell_of.T
    return gaps


def certainty(scores: np.ndarray, permutation: np.ndarray, outcomes: Sequence[int], observed: np.ndarray) -> Certainty:
    """Which exchanges of two clusters the labels do not rule out, and what depends on them.

    Clusters that differ in nodes without labels only are alike as far as labels go: exchanging them changes nothing.

    Args:
        scores: Those of `labelled_mass`, `[C, C]`.
        permutation: The best labelling, `[C]`.
        outcomes: Outcomes per node.
        observed: Which nodes have labels, bool `[L]`.
    """
    codes = np.stack(np.unravel_index(permutation, tuple(outcomes)), axis=1)
    differs = (codes[:, None] != codes) & observed
    other, gaps = differs.any(axis=2), exchange_gaps(scores, permutation)
    tied = other & (gaps < LEAST_GAP)
    return Certainty(
        float(max(gaps[other].min(), 0.0)) if other.any() else None,
        differs[tied].any(axis=0),
        np.sort(permutation[tied.any(axis=1)]),
    )


def unlabelled_combinations(codes: np.ndarray, outcomes: Sequence[int]) -> list[tuple[int, ...]]:
    """Joint outcomes that no sample with all labels has.

    Args:
        codes: Outcome of every node that has labels, `[n, L]`; `UNKNOWN` where there is none.
        outcomes: Outcomes of the same nodes.
    """
    whole = codes[(codes != UNKNOWN).all(axis=1)]
    seen = np.ravel_multi_index(tuple(whole.T), tuple(outcomes))
    missing = np.setdiff1d(np.arange(prod(outcomes)), seen)
    return [tuple(map(int, combination)) for combination in zip(*np.unravel_index(missing, outcomes), strict=True)]


def left_out_agreement(responsibilities: np.ndarray, codes: np.ndarray, outcomes: Sequence[int]) -> list[float | None]:
    """Per node, the share of labels that the clusters agree with where all but these labels name the clusters.

    Labelled samples are left out one by one, or in ten parts where there are more than 100 of them. Cells that the rest
    do not tell apart are drawn, lest the numbers of the clusters, which may come from an earlier matching, tell.

    Args:
        responsibilities: R of the clusters, `[n, C]`.
        codes: Outcome of each node by the labels, `[n, L]`; `UNKNOWN` where there is none.
        outcomes: Outcomes per node.

    Returns:
        None for nodes without labels, and for all where fewer than two samples have any.
    """
    rows = np.flatnonzero((codes != UNKNOWN).any(axis=1))
    if len(rows) < 2:
        return [None] * len(outcomes)
    found, known = _named_by_others(responsibilities[rows], codes[rows], outcomes), codes[rows]
    return [
        float((found[there, node] == known[there, node]).mean()) if there.any() else None
        for node, there in enumerate((known != UNKNOWN).T)
    ]


def _named_by_others(responsibilities: np.ndarray, codes: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """Outcomes `[n, L]` of labelled samples by the labels of the samples in other parts."""
    rng, n = np.random.default_rng(0), len(codes)
    part = rng.permutation(n) % (n if n <= _MOST_LEFT_OUT_SINGLY else _FOLDS)
    whole, cells = labelled_mass(responsibilities, codes, outcomes), np.empty(n, dtype=np.int64)
    for number in range(part.max() + 1):
        out = part == number
        rest = whole - labelled_mass(responsibilities[out], codes[out], outcomes)
        order = rng.permutation(len(whole))
        cell_of = np.empty(len(whole), dtype=np.int64)
        cell_of[order] = assign_cells(rest[order])
        cells[out] = cell_of[responsibilities[out].argmax(axis=1)]
    return np.stack(np.unravel_index(cells, tuple(outcomes)), axis=1)


def is_beyond_chance(agreement: float, codes: np.ndarray) -> bool:
    """Whether labels that were left out agree with a node better than its most frequent label would.

    One-sided binomial test at 1 %. Fewer than 20 labels are not tested: their gap and the groups without one speak.

    Args:
        agreement: Share of the labels that agree, left out of the naming.
        codes: Labels of the node, `[n]`; `UNKNOWN` where there is none.
    """
    known = codes[codes != UNKNOWN]
    if len(known) < _FEWEST_TESTED:
        return True
    chance = float(np.bincount(known).max() / len(known))
    return bool(binomtest(round(agreement * len(known)), len(known), chance, "greater").pvalue < _LEVEL)
