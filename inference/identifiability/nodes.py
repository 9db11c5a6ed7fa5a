"""Which nodes have one meaning, and as what the others may be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference.identifiability.side_information import SideInformation
from inference.identifiability.visible_order import VisibleOrder

__all__ = ["find_identified", "remaining_readings"]


def find_identified(known: SideInformation) -> tuple[str, ...]:
    """Nodes that every remaining labelling reads alike, up to names of outcomes and exchanges of like nodes.

    A node is one of them if it alone is an intersection of masks, if it has labels or was set to its outcomes, or if
    all nodes are known to be independent.
    """
    if known.independent:
        return known.names
    fixed = [_fixed(known, nodes) for nodes in known.possible_known()]
    return tuple(node for node in known.names if all(node in nodes for nodes in fixed))


def _fixed(known: SideInformation, labelled: Sequence[str]) -> set[str]:
    order = VisibleOrder.of(known.outcomes, known.visible_positions, known.positions(labelled))
    return {node for position, node in enumerate(known.names) if order.is_fixed(position)}


def remaining_readings(known: SideInformation) -> tuple[str, ...]:
    """Sentences that say what nodes that are not identified may be read as; none where all are."""
    identified = find_identified(known)
    if set(identified) == set(known.names):
        return ()
    return tuple(_readings(known, known.order(), set(identified)))


def _readings(known: SideInformation, order: VisibleOrder, identified: set[str]) -> Iterator[str]:
    for group in order.groups:
        nodes, below = _names(known, group), _names(known, order.below(group[0]))
        if not identified & set(nodes):
            yield _split_anyhow(known, nodes, below) if len(nodes) > 1 else _recoded(known, nodes[0], below)


def _split_anyhow(known: SideInformation, nodes: Sequence[str], below: Sequence[str]) -> str:
    anew = f", anew for every outcome of {_listed(below)}" if below else ""
    return (
        f"{_listed(nodes)} are only known together: any way to arrange their joint outcomes in a table fits as "
        f"well{anew}; {_example(known, nodes[0], nodes[1])}"
    )


def _recoded(known: SideInformation, node: str, below: Sequence[str]) -> str:
    if not below:
        return f"{node} is fixed only if the targets of the environments turn out well"
    return (
        f"the outcomes of {node} may be exchanged anew for every outcome of {_listed(below)}; "
        f"{_example(known, node, below[0])}"
    )


def _example(known: SideInformation, node: str, other: str) -> str:
    if known.nodes[node] == known.nodes[other] == 2:
        return f"for example, {node} may be read as {node} xor {other}"
    return f"for example, two outcomes of {node} may be exchanged where {other} has its first outcome, and nowhere else"


def _names(known: SideInformation, positions: Sequence[int]) -> list[str]:
    return [known.names[position] for position in positions]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
