"""How many ways there are to read clusters as joint outcomes of nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence

from inference.identifiability.visible_order import VisibleOrder, check_outcomes

__all__ = ["count_labellings", "equivalent_labellings", "log10_labellings"]

_MOST_DIGITS = 1000


def count_labellings(
    outcomes: Sequence[int],
    visible: Iterable[Collection[int]] | None = None,
    *,
    labelled: Collection[int] = (),
    kinds: Sequence[Hashable] | None = None,
) -> int | None:
    r"""Count the labellings, bijections from clusters to cells, that leave the likelihood unchanged.

    With free means and a complete DAG, a labelling can be followed by every relabelling of the cells that preserves
    what each modality can tell apart (`VisibleOrder`). Labellings that differ only by renaming outcomes inside a node,
    or by exchanging nodes that the same modalities see, mean the same, so that

    $$\frac{\prod_g \bigl[\bigl(\prod_{\ell \in g} C_\ell\bigr)!\bigr]^{\prod_{j < g} C_j}}
           {\prod_\ell C_\ell!\ \prod_k g_k!}$$

    labellings remain, g over groups of nodes that the same modalities see, j < g over the nodes that all of these
    modalities see besides, g_k over numbers of nodes that can be exchanged. It is assumed that every cell occurs, and
    that each modality tells all its visible combinations apart: where this fails there are more (`recount`).

    Args:
        outcomes: Outcomes of each node, `C_1, ..., C_L`, each at least 2.
        visible: Nodes that each modality sees, by position; None: one modality that sees all.
        labelled: Nodes whose outcome is known for every cell, as from labels.
        kinds: What else tells nodes apart, `[L]`: only nodes of equal kind are exchanged.

    Returns:
        The exact number, 1 if all nodes are fixed; None if it has more than 1000 digits.

    Raises:
        ValueError: If there is no node, one has fewer than two outcomes, is seen by no modality, or is not there.

    Example:
        >>> count_labellings((2, 2)), count_labellings((2, 2, 2))
        (3, 840)
        >>> count_labellings((2, 2, 2), [{0, 1}, {1, 2}]), count_labellings((2, 2, 2), [{0, 1}, {1, 2}, {0, 2}])
        (4, 1)
    """
    order, kinds = _order(outcomes, visible, labelled, kinds)
    if _log10(order, kinds) > _MOST_DIGITS:
        return None
    return math.prod(math.factorial(n) ** k for n, k in order.factors()) // math.prod(
        map(math.factorial, order.renamings(kinds))
    )


def log10_labellings(
    outcomes: Sequence[int],
    visible: Iterable[Collection[int]] | None = None,
    *,
    labelled: Collection[int] = (),
    kinds: Sequence[Hashable] | None = None,
) -> float:
    """Decimal logarithm of `count_labellings`, however large; 0 to rounding if one is left.

    Args:
        outcomes: See there.
        visible: See there.
        labelled: See there.
        kinds: See there.

    Raises:
        ValueError: As there.
    """
    return _log10(*_order(outcomes, visible, labelled, kinds))


def equivalent_labellings(outcomes: Sequence[int]) -> int:
    """The labellings of one modality that sees all nodes, `C! / (prod C_l! prod g_k!)`, in full.

    Args:
        outcomes: Outcomes of each node, each at least 2.

    Raises:
        ValueError: If there is no node, or a node has fewer than two outcomes.

    Example:
        >>> equivalent_labellings((2, 2)), equivalent_labellings((2, 2, 2))
        (3, 840)
    """
    check_outcomes(outcomes)
    renamings = math.prod(map(math.factorial, outcomes))
    exchanges = math.prod(map(math.factorial, Counter(outcomes).values()))
    return math.factorial(math.prod(outcomes)) // (renamings * exchanges)


def _order(
    outcomes: Sequence[int],
    visible: Iterable[Collection[int]] | None,
    labelled: Collection[int],
    kinds: Sequence[Hashable] | None,
) -> tuple[VisibleOrder, Sequence[Hashable]]:
    if kinds is not None and len(kinds) != len(outcomes):
        raise ValueError(f"kinds: expected one per node, {len(outcomes)}, got {len(kinds)}")
    return VisibleOrder.of(outcomes, visible, labelled), kinds or [None] * len(outcomes)


def _log10(order: VisibleOrder, kinds: Sequence[Hashable]) -> float:
    # Down-sets can be astronomically many cells: k as a float, not n! ** k.
    logs = math.fsum(float(k) * math.lgamma(n + 1) for n, k in order.factors())
    return (logs - math.fsum(math.lgamma(n + 1) for n in order.renamings(kinds))) / math.log(10)
