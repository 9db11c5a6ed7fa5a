"""Which node is which factor, and which outcome which level, where the two correspond one to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.evaluation.node_accuracy import contingency, node_accuracy

__all__ = ["Alignment", "align"]


@dataclass(frozen=True)
class Alignment:
    """The best one-to-one reading of nodes as factors.

    Attributes:
        node: Per factor, the index of its node, `[F]`.
        outcome: Per factor and level, the outcome of its node.
    """

    node: tuple[int, ...]
    outcome: tuple[tuple[int, ...], ...]

    def joint(self, joint: np.ndarray) -> np.ndarray:
        """p(N) as a distribution of the factors: `[C_1, ..., C_L]` to `[level_1, ..., level_F]`."""
        return joint.transpose(self.node)[np.ix_(*self.outcome)]


def align(
    cells: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray], levels: Sequence[int]
) -> Alignment | None:
    """Nodes to factors so that mean accuracy is highest, then outcomes to levels so that most samples agree.

    Args:
        cells: Cell of each sample, row-major over the nodes' outcomes, `[sample]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.
        levels: Number of levels of each factor.

    Returns:
        The alignment; None where there are not as many nodes as factors, or a node has not as many outcomes as its
        factor has levels.
    """
    if len(outcomes) != len(levels):
        return None
    nodes = np.stack(np.unravel_index(cells, tuple(outcomes)), axis=1)
    assignment = node_accuracy(nodes, outcomes, factors).assignment
    node = tuple(index for index in assignment.values() if index is not None)
    if [outcomes[index] for index in node] != list(levels):
        return None
    pairs = zip(node, factors.values(), levels, strict=True)
    return Alignment(node, tuple(_outcome_of_level(nodes[:, index], codes, size) for index, codes, size in pairs))


def _outcome_of_level(node: np.ndarray, codes: np.ndarray, size: int) -> tuple[int, ...]:
    table = np.zeros((size, size))
    found = contingency(codes, node)
    table[: found.shape[0], : found.shape[1]] = found
    return tuple(int(outcome) for outcome in linear_sum_assignment(table, maximize=True)[1])
