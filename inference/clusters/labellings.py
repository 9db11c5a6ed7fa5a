"""How many ways there are to read clusters as joint outcomes of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import factorial, prod

__all__ = ["equivalent_labellings"]


def equivalent_labellings(outcomes: Sequence[int]) -> int:
    r"""Count the labellings that leave the likelihood of a single modality unchanged.

    With free component means and a complete DAG over the nodes, any bijection between the C clusters and the C joint
    outcomes fits equally well. Bijections that differ only by renaming outcomes inside a node, or by exchanging nodes
    with equally many outcomes, mean the same, so that

    $$\frac{C!}{\prod_\ell C_\ell!\ \prod_k g_k!}, \qquad C = \prod_\ell C_\ell,$$

    labellings remain, where g_k nodes have k outcomes.

    Args:
        outcomes: Number of outcomes of each node, `C_1, ..., C_L`, each at least 2.

    Returns:
        The exact number. One means that the clusters alone fix the node.

    Raises:
        ValueError: If there is no node, or a node has fewer than two outcomes.

    Example:
        >>> equivalent_labellings((2, 2)), equivalent_labellings((2, 2, 2))
        (3, 840)
    """
    if not outcomes or min(outcomes) < 2:
        raise ValueError(f"outcomes: expected at least 2 per node, got {tuple(outcomes)}; leave out constant nodes")
    renamings = prod(map(factorial, outcomes))
    exchanges = prod(map(factorial, Counter(outcomes).values()))
    return factorial(prod(outcomes)) // (renamings * exchanges)
