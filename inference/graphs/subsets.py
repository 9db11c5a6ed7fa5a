"""Sets of nodes as bits of a number, and sums over all subsets or supersets of every set at once."""

from __future__ import annotations

import numpy as np

__all__ = [
    "count_nodes",
    "log_sums_over_subsets",
    "log_sums_over_supersets",
    "maxima_over_subsets",
    "members",
    "outside",
    "parent_sets",
    "sets_by_size",
    "subsets_of",
]


def count_nodes(table: np.ndarray) -> int:
    """L of a table over sets `[..., 2^L]`."""
    return int(table.shape[-1]).bit_length() - 1


def members(sets: np.ndarray, n_nodes: int) -> np.ndarray:
    """Whether node k is in each set, bool `[..., L]`."""
    return (sets[..., None] >> np.arange(n_nodes)) & 1 == 1


def parent_sets(dags: np.ndarray) -> np.ndarray:
    """The parents of every node as a set, `[..., L]`, from graphs `[..., L, L]`, row = cause, column = effect."""
    bits = 1 << np.arange(dags.shape[-1], dtype=np.int64)
    sets: np.ndarray = (dags.astype(np.int64) * bits[:, None]).sum(-2)
    return sets


def outside(sets: np.ndarray, n_nodes: int) -> np.ndarray:
    """The nodes that are not in each of some sets of one size, `[set, L - size]`, in ascending order."""
    return np.nonzero(~members(sets, n_nodes))[1].reshape(len(sets), -1)


def sets_by_size(n_nodes: int) -> list[np.ndarray]:
    """All sets of 0, 1, ..., L nodes, each list in ascending order."""
    sets = np.arange(2**n_nodes)
    size = np.bitwise_count(sets)
    return [sets[size == k] for k in range(n_nodes + 1)]


def subsets_of(nodes: int) -> np.ndarray:
    """All subsets of a set, itself and the empty one included, in ascending order."""
    found = np.zeros(1, dtype=np.int64)
    for bit in range(nodes.bit_length()):
        if nodes >> bit & 1:
            found = np.concatenate([found, found | 1 << bit])
    return found


def log_sums_over_subsets(table: np.ndarray) -> np.ndarray:
    r"""$\log \sum_{S \subseteq U} e^{t(S)}$ for every U, in `L 2^L` steps (the zeta transform).

    Args:
        table: t, `[..., 2^L]`, -inf allowed.
    """
    return _transformed(table, np.logaddexp, into=1)


def log_sums_over_supersets(table: np.ndarray) -> np.ndarray:
    r"""$\log \sum_{S \supseteq U} e^{t(S)}$ for every U, `[..., 2^L]`."""
    return _transformed(table, np.logaddexp, into=0)


def maxima_over_subsets(table: np.ndarray) -> np.ndarray:
    r"""$\max_{S \subseteq U} t(S)$ for every U, `[..., 2^L]`."""
    return _transformed(table, np.maximum, into=1)


def _transformed(table: np.ndarray, combine: np.ufunc, into: int) -> np.ndarray:
    """Node by node, what lacks the node and what has it are combined into one of the two."""
    found = np.array(table, dtype=float)
    for bit in range(count_nodes(table)):
        halves = found.reshape(*found.shape[:-1], -1, 2, 1 << bit)
        combine(halves[..., 0, :], halves[..., 1, :], out=halves[..., into, :])
    return found
