r"""Whether every node stands for one factor, and every factor for one node.

The importance of node i for factor j is the share of what there is to know of the factor that the node tells,
$R_{ij} = I(N_i; F_j) / H(F_j)$. With its rows and columns as shares, DCI (Eastwood and Williams 2018) is

* disentanglement $\sum_i \rho_i (1 - H_F(R_{i\cdot}))$, $\rho_i = \sum_j R_{ij} / \sum_{ij} R_{ij}$, entropies in
  units of log F: 1 where each node tells of one factor only;
* completeness $\frac{1}{F} \sum_j (1 - H_L(R_{\cdot j}))$, in units of log L: 1 where one node tells of each factor;
* informativeness $\frac{1}{F} \sum_j I(N_1, ..., N_L; F_j) / H(F_j)$: 1 where the nodes together tell all factors.

The original takes importances from trained classifiers; those of discrete nodes need none. What two nodes tell of a
factor only together counts for informativeness alone. The gap (after MIG, Chen et al. 2018) of a factor is its
largest $R_{ij}$ minus the second one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inference.evaluation.information import entropy, mutual_information
from inference.evaluation.node_accuracy import contingency

__all__ = ["Disentanglement", "disentanglement", "importance"]


@dataclass(frozen=True)
class Disentanglement:
    """How the nodes share the factors between them; all in [0, 1], 1 is best.

    Attributes:
        disentanglement: Each node tells of one factor only.
        completeness: Each factor is told by one node only.
        informativeness: All nodes together tell the factors.
        gap: Per factor, what the first node tells of it beyond the second, in units of the factor's entropy.
        random: Expected disentanglement, completeness and mean gap of the same clusters, named at random.
    """

    disentanglement: float
    completeness: float
    informativeness: float
    gap: Mapping[str, float]
    random: Mapping[str, float]


def disentanglement(
    cells: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    generator: np.random.Generator,
    n_draws: int = 300,
) -> Disentanglement:
    """Score the nodes of these cells.

    Args:
        cells: Cell of each sample, row-major over the nodes' outcomes, `[sample]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.
        generator: Source of the random labellings.
        n_draws: Number of them.
    """
    n_cells = int(np.prod(outcomes))
    counts = [_padded(contingency(cells, codes), n_cells) for codes in factors.values()]
    labellings = np.stack([np.arange(n_cells), *(generator.permutation(n_cells) for _ in range(n_draws))])
    shares = importance(labellings, outcomes, counts)
    scores = {"disentanglement": _disentanglement(shares), "completeness": _completeness(shares)}
    gaps = _gaps(shares)
    together = np.array([float(_share_told(table)) for table in counts])
    return Disentanglement(
        **{name: float(values[0]) for name, values in scores.items()},
        informativeness=float(together.mean()),
        gap=dict(zip(factors, gaps[0].tolist(), strict=True)),
        random={
            **{name: float(values[1:].mean()) for name, values in scores.items()},
            "gap_mean": float(gaps[1:].mean()),
        },
    )


def importance(labellings: np.ndarray, outcomes: Sequence[int], counts: Sequence[np.ndarray]) -> np.ndarray:
    """I(N_i; F_j) / H(F_j), `[draw, node, factor]`.

    Args:
        labellings: Cell that each cluster stands for, `[draw, cluster]`.
        outcomes: Number of outcomes of each node.
        counts: Per factor, number of samples `[cluster, level]`.
    """
    nodes = np.unravel_index(labellings, tuple(outcomes))
    one_hot = [np.eye(size)[node].swapaxes(1, 2) for size, node in zip(outcomes, nodes, strict=True)]
    return np.stack([np.stack([_share_told(node @ table) for table in counts], axis=-1) for node in one_hot], axis=1)


def _share_told(tables: np.ndarray) -> np.ndarray:
    """Mutual information of rows and columns in units of the entropy of the columns; 0 where that is 0."""
    total = entropy(tables.sum(-2))
    return mutual_information(tables) / np.where(total > 0, total, 1.0)


def _padded(table: np.ndarray, n_rows: int) -> np.ndarray:
    return np.pad(table, ((0, n_rows - len(table)), (0, 0)))


def _disentanglement(shares: np.ndarray) -> np.ndarray:
    weight = shares.sum(-1)
    total = weight.sum(-1, keepdims=True)
    return (weight / np.where(total > 0, total, 1.0) * _concentration(shares)).sum(-1)


def _completeness(shares: np.ndarray) -> np.ndarray:
    told = shares.sum(-2) > 0
    return (told * _concentration(shares.swapaxes(-1, -2))).mean(-1)


def _concentration(shares: np.ndarray) -> np.ndarray:
    """1 - entropy along the last axis in units of its maximum; 1 where there is one entry only."""
    n = shares.shape[-1]
    return 1 - entropy(shares) / np.log(n) if n > 1 else np.ones(shares.shape[:-1])


def _gaps(shares: np.ndarray) -> np.ndarray:
    """The largest along the nodes minus the second (0 where there is none), `[draw, factor]`."""
    ordered = np.sort(shares, axis=1)
    return ordered[:, -1] - (ordered[:, -2] if shares.shape[1] > 1 else 0.0)
