"""Clusters named by labels of some samples: a bijection of clusters and cells by counts, not by majority."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from causalpima.inference.clusters.counting import count_labellings, log10_labellings

__all__ = [
    "LEAST_GAP",
    "MOST_LABELLINGS",
    "UNKNOWN",
    "Certainty",
    "Clusters",
    "Labeller",
    "Labelling",
    "Source",
    "allowed_cells",
    "as_tables",
    "assign_cells",
    "certainty",
    "check_number",
    "enumerate_labellings",
    "exchange_gaps",
    "is_beyond_chance",
    "labelled_mass",
    "left_out_agreement",
    "node_outcomes",
    "partition_codes",
    "rename_towards",
    "unlabelled_combinations",
    "with_nodes",
]


# Which cluster is which joint outcome of the nodes, as side information tells.


Source = Literal["none", "mask", "names", "labels", "environments", "read_outs", "independence"]


class Clusters(NamedTuple):
    """What a labeller sees of the clusters that were read out.

    Attributes:
        responsibilities: Of the clusters, `[n, C]`, on the training samples.
        embedding: Mean of q(Z|X) of the same samples, `[n, J]`.
    """

    responsibilities: np.ndarray
    embedding: np.ndarray


@dataclass(frozen=True)
class Labelling:
    """A bijection of clusters and cells, and where it comes from.

    Attributes:
        permutation: Cluster c is cell `permutation[c]`, row-major over the nodes' outcomes, `[C]`.
        source: What told it.
        named_nodes: Names of the nodes that have a meaning by it.
        details: What the source has to say of it, as plain values for `summary.json`.
        joint: p(N) over the cells `[C_1, ..., C_L]`, where the source knows better than the mass of all samples.
        environment_joint: p(N | e) of the environments that intervene, `[C_1, ..., C_L]` each, where they tell `joint`.
        agreement: How well cluster c agrees with being cell k, `[C, C]`, where the source can say; what a mask leaves
            open is matched by it.
    """

    permutation: np.ndarray
    source: Source = "none"
    named_nodes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    joint: np.ndarray | None = None
    agreement: np.ndarray | None = None
    environment_joint: Mapping[str, np.ndarray] = field(default_factory=dict)

    def to_plain(self) -> dict[str, Any]:
        """All but the permutation, which is no more needed once the cells bear their numbers."""
        plain = {"source": self.source, "named_nodes": list(self.named_nodes), "details": dict(self.details)}
        if self.joint is None:
            return plain
        plain["joint"] = self.joint.tolist()
        told = {name: joint.tolist() for name, joint in self.environment_joint.items()}
        return {**plain, "environment_joint": told} if told else plain


Labeller = Callable[[Clusters], Labelling]


# All labellings of clusters that differ in meaning, for searches over them.


MOST_LABELLINGS = 100_000


def enumerate_labellings(outcomes: Sequence[int], kinds: Sequence[Hashable] | None = None) -> np.ndarray:
    """One labelling of every class of those that differ only by names of outcomes, or by an exchange of alike nodes.

    The one kept has, at every node, outcomes in the order of their first cluster, and alike nodes in lexicographic
    order of the outcomes that they give to clusters 0, 1, ...

    Args:
        outcomes: Outcomes per node, `C_1, ..., C_L`.
        kinds: What is known of each node, for example its name; nodes of one kind with equally many outcomes are alike.
            None: all are of one kind, as in `count_labellings`.

    Returns:
        `[K, C]`: cluster c is cell `[k, c]`, row-major over the nodes' outcomes; K is `count_labellings`.

    Raises:
        ValueError: More than `MOST_LABELLINGS`.
    """
    check_number(outcomes, kinds)
    pairs = _alike(outcomes, kinds or [None] * len(outcomes))
    codes = np.array(np.unravel_index(np.arange(prod(outcomes)), tuple(outcomes)))
    found = (cells for cells in _in_first_seen_order(codes) if _is_ordered(codes[:, cells], pairs))
    return np.array(list(found))


def node_outcomes(labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """The outcome of every node in every cluster, `[K, C]` -> `[K, L, C]`."""
    return np.stack(np.unravel_index(labellings, tuple(outcomes)), axis=-2)


def with_nodes(codes: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """The inverse of `node_outcomes`, `[..., L, C]` -> `[..., C]`."""
    found: np.ndarray = np.ravel_multi_index(tuple(np.moveaxis(codes, -2, 0)), tuple(outcomes))
    return found


def partition_codes(codes: np.ndarray) -> np.ndarray:
    """The outcomes of a node in every cluster `[..., C]`, renamed in the order of their first cluster."""
    flat = codes.reshape(-1, codes.shape[-1])
    first = (flat[:, :, None] == flat[:, None, :]).argmax(-1)
    met = (first == np.arange(flat.shape[-1])).cumsum(-1) - 1
    return np.take_along_axis(met, first, -1).reshape(codes.shape)


def rename_towards(labelling: np.ndarray, wanted: np.ndarray, outcomes: Sequence[int], mass: np.ndarray) -> np.ndarray:
    """The same labelling with the outcomes of each node renamed to agree with another one on as much mass as they can.

    Args:
        labelling: `[C]`.
        wanted: The other labelling, `[C]`.
        outcomes: Outcomes per node.
        mass: Mass of the clusters, `[C]`.
    """
    codes, others = (node_outcomes(entry, outcomes) for entry in (labelling, wanted))
    renamed = []
    for own, other, size in zip(codes, others, outcomes, strict=True):
        agreement = np.zeros((size, size))
        np.add.at(agreement, (own, other), mass)
        renamed.append(scipy.optimize.linear_sum_assignment(agreement, maximize=True)[1][own])
    return with_nodes(np.array(renamed), outcomes)


def as_tables(mass: np.ndarray, labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """Mass of clusters as tables over the nodes, `[*batch, C]` and `[K, C]` -> `[K, *batch, C_1, ..., C_L]`."""
    by_cell = np.moveaxis(mass[..., np.argsort(labellings, axis=-1)], -2, 0)
    return by_cell.reshape(*by_cell.shape[:-1], *outcomes)


def _alike(outcomes: Sequence[int], kinds: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of neighbouring positions among alike nodes."""
    marks = list(zip(outcomes, kinds, strict=True))
    nodes = range(len(marks))
    return [(i, j) for i, j in combinations(nodes, 2) if marks[i] == marks[j] and marks[i] not in marks[i + 1 : j]]


def check_number(outcomes: Sequence[int], kinds: Sequence[Hashable] | None = None) -> None:
    """Refuse nodes with more labellings than can be searched.

    Raises:
        ValueError: There are more than `MOST_LABELLINGS`.
    """
    number = count_labellings(outcomes, kinds=kinds)
    if number is None or number > MOST_LABELLINGS:
        raise ValueError(
            f"nodes: expected at most {MOST_LABELLINGS} labellings of the cells to search, got about "
            f"1e{log10_labellings(outcomes, kinds=kinds):.0f} for nodes with {', '.join(map(str, outcomes))} outcomes; "
            "name the clusters by labels or by a mask, which need no search"
        )


def _in_first_seen_order(codes: np.ndarray) -> Iterator[list[int]]:
    """Bijections whose clusters meet the outcomes of every node in the order 0, 1, ...; cells as a list."""
    n_cells = codes.shape[1]
    cells: list[int] = []
    free = [True] * n_cells
    columns = [tuple(int(code) for code in column) for column in codes.T]

    def extend(seen: tuple[int, ...]) -> Iterator[list[int]]:
        if len(cells) == n_cells:
            yield list(cells)
        for cell in range(n_cells):
            if free[cell] and all(code <= most for code, most in zip(columns[cell], seen, strict=True)):
                free[cell] = False
                cells.append(cell)
                yield from extend(tuple(max(most, code + 1) for code, most in zip(columns[cell], seen, strict=True)))
                free[cell] = True
                cells.pop()

    yield from extend((0,) * len(codes))


def _is_ordered(by_node: np.ndarray, pairs: Sequence[tuple[int, int]]) -> bool:
    return all(tuple(by_node[i]) < tuple(by_node[j]) for i, j in pairs)


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
    scores = scores + bonus * np.eye(len(scores))
    permutation: np.ndarray = scipy.optimize.linear_sum_assignment(scores, maximize=True)[1]
    return permutation


# How far labels settle which cluster is which cell: agreement with labels left out, and the next best labelling.


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
    return bool(scipy.stats.binomtest(round(agreement * len(known)), len(known), chance, "greater").pvalue < _LEVEL)
