"""How far a found equivalence class is from the true one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inference.graphs.cpdag import compelled, skeleton, v_structures

__all__ = ["GraphScores", "compare", "permute_nodes", "structural_hamming_distance"]


@dataclass(frozen=True)
class GraphScores:
    """A found CPDAG against the true one.

    Attributes:
        shd: Structural Hamming distance: pairs of nodes that are joined, or directed, in another way.
        skeleton_f1: F1 of the joined pairs.
        v_structure_f1: F1 of the v-structures.
        orientation: Share of the compelled edges of the truth that are found with this direction; None where the truth
            compels none.
    """

    shd: int
    skeleton_f1: float
    v_structure_f1: float
    orientation: float | None

    @property
    def is_exact(self) -> bool:
        """Whether it is the true class."""
        return self.shd == 0


def compare(found: np.ndarray, true: np.ndarray) -> GraphScores:
    """Score a CPDAG against the true one.

    F1 is `2 TP / (2 TP + FP + FN)`, and 1 where there is nothing to find and nothing was found.

    Args:
        found: CPDAG `[L, L]`, 1 both ways where the direction is open.
        true: The same of the truth, nodes in the same order.

    Raises:
        ValueError: The two differ in shape.
    """
    return GraphScores(
        structural_hamming_distance(found, true),
        _f1(np.triu(skeleton(found)), np.triu(skeleton(true))),
        _f1(_once(v_structures(found)), _once(v_structures(true))),
        _orientation(found, true),
    )


def structural_hamming_distance(found: np.ndarray, true: np.ndarray) -> int:
    """Number of pairs of nodes whose edge differs: missing, surplus, reversed, or directed in one alone.

    Every pair counts once (Tsamardinos et al. 2006, on CPDAGs).

    Args:
        found: `[L, L]`, 1 both ways where the direction is open.
        true: The same of the truth.

    Raises:
        ValueError: The two differ in shape.
    """
    if found.shape != true.shape:
        raise ValueError(f"found: expected shape {true.shape} as the truth has, got {found.shape}; align the nodes")
    differs = found.astype(bool) != true.astype(bool)
    return int(np.triu(differs | differs.T, 1).sum())


def permute_nodes(graph: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The same graph with its nodes in another order: node `order[k]` becomes node k."""
    return graph[np.ix_(order, order)]


def _f1(found: np.ndarray, true: np.ndarray) -> float:
    hits, total = int((found & true).sum()), int(found.sum() + true.sum())
    return 2 * hits / total if total else 1.0


def _once(found: np.ndarray) -> np.ndarray:
    """i → k ← j with i < j alone."""
    index = np.arange(len(found))
    return found & (index[:, None, None] < index[None, None, :])


def _orientation(found: np.ndarray, true: np.ndarray) -> float | None:
    wanted = compelled(true)
    return float((compelled(found) & wanted).sum() / wanted.sum()) if wanted.any() else None
