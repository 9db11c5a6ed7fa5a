"""Which single addition to what is known would settle most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from inference.identifiability.counting import Remaining, count_remaining
from inference.identifiability.edges import edge_knowledge
from inference.identifiability.nodes import find_identified
from inference.identifiability.side_information import Environment, SideInformation

__all__ = ["Suggestion", "suggest"]

Kind = Literal["labels", "modality", "intervention"]

_COST: dict[Kind, int] = {"labels": 0, "modality": 1, "intervention": 2}
_MOST_NODES_FOR_ALL_SUBSETS = 8


@dataclass(frozen=True)
class Suggestion:
    """One addition, and what remains after it.

    Attributes:
        kind: What is added.
        nodes: The nodes that it sees, labels or sets.
        text: What to do.
        remaining: Labellings that remain then.
        identified: Nodes that are identified then.
        n_open_edges: Pairs of nodes of whose edge something remains undetermined then.
    """

    kind: Kind
    nodes: tuple[str, ...]
    text: str
    remaining: Remaining
    identified: tuple[str, ...]
    n_open_edges: int


def suggest(known: SideInformation) -> tuple[Suggestion, ...]:
    """Every single addition that settles something, the one first that leaves fewest labellings.

    Tried are a modality that sees any nodes (with more than 8 nodes: at most two of them, or all but at most two),
    labels of any node, and interventions on any node. Of equals the cheaper one comes first: labels, then a modality,
    by the number of its nodes, then interventions. Where one labelling is left, edges that remain undetermined decide.
    """
    now, open_now = count_remaining(known), _n_open(known)
    found = (_judge(*addition) for addition in _additions(known))
    useful = [s for s in found if s.remaining.log10 < now.log10 - 1e-9 or (now.is_one and s.n_open_edges < open_now)]
    return tuple(sorted(useful, key=lambda s: _rank(s, now.is_one)))


def _rank(suggestion: Suggestion, edges_decide: bool) -> tuple[float, int, int, int, int]:
    s = suggestion
    first = s.n_open_edges if edges_decide else 0
    return round(s.remaining.log10, 9), first, _COST[s.kind], len(s.nodes), s.n_open_edges


def _judge(kind: Kind, nodes: tuple[str, ...], text: str, known: SideInformation) -> Suggestion:
    return Suggestion(kind, nodes, text, count_remaining(known), find_identified(known), _n_open(known))


def _n_open(known: SideInformation) -> int:
    return sum(edge.is_open for edge in edge_knowledge(known, find_identified(known)))


def _additions(known: SideInformation) -> Iterator[tuple[Kind, tuple[str, ...], str, SideInformation]]:
    for node in known.names:
        if node not in known.known:
            yield "labels", (node,), f"label some samples for {node}", _with_labels(known, node)
        if node not in known.targets("do") and known.n_free_targets:
            yield "intervention", (node,), _intervention(known, node), _with_interventions(known, node)
    for seen in _subsets(known.names):
        yield "modality", seen, _modality(known, seen), _with_modality(known, seen)


def _with_labels(known: SideInformation, node: str) -> SideInformation:
    return replace(known, labels=(*known.labels, node))


def _with_interventions(known: SideInformation, node: str) -> SideInformation:
    added = (Environment("do", node),) * (known.nodes[node] - 1)
    return replace(known, environments=(*known.environments, *added))


def _with_modality(known: SideInformation, seen: tuple[str, ...]) -> SideInformation:
    present = dict(known.mask) or {"present": known.names}
    return replace(known, mask={**present, f"added to {', '.join(present)}": seen})


def _intervention(known: SideInformation, node: str) -> str:
    outcomes = known.nodes[node]
    if outcomes == 2:
        return f"an intervention that sets {node}"
    return f"interventions that set {node} to {outcomes - 1} of its {outcomes} outcomes, one after the other"


def _modality(known: SideInformation, seen: tuple[str, ...]) -> str:
    unseen = [node for node in known.names if node not in seen]
    but = f" but not {' or '.join(unseen)}" if unseen else ""
    return f"measure a modality that sees {' and '.join(seen)}{but}"


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    n = len(names)
    sizes = range(1, n + 1) if n <= _MOST_NODES_FOR_ALL_SUBSETS else (1, 2, n - 2, n - 1, n)
    return (seen for size in sizes for seen in combinations(names, size))
