"""What can be known of the edge between two nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from inference.identifiability.side_information import SideInformation

__all__ = ["EdgeKnowledge", "Status", "edge_knowledge"]

Status = Literal["meaningless", "association", "presence", "direction", "absent"]


@dataclass(frozen=True)
class EdgeKnowledge:
    """What can be known of one pair of nodes.

    Attributes:
        nodes: The pair.
        status: `meaningless`: one of the nodes is not identified. `association`: whether the two depend on each other
            can be known, but not whether directly, as another node is not identified. `presence`: the edge can be
            found, its direction up to Markov equivalence. `direction`: both can be found. `absent`: declared so.
        reason: The same in words.
    """

    nodes: tuple[str, str]
    status: Status
    reason: str

    @property
    def is_open(self) -> bool:
        """Whether something about it remains undetermined, whatever the graph is."""
        return self.status not in ("direction", "absent")


def edge_knowledge(known: SideInformation, identified: Collection[str]) -> tuple[EdgeKnowledge, ...]:
    """What can be known of every pair, with enough samples and for a distribution that is faithful to its graph.

    A graph can be learned up to Markov equivalence where all nodes are identified. Tiers direct the edges between
    them. An intervention, do or soft, directs the edges between its target and the other nodes (Hauser and Bühlmann
    2012; Yang, Katcoff, Uhler 2018), as the observational samples are there, too.
    """
    unidentified = [node for node in known.names if node not in identified]
    return tuple(_pair(known, pair, unidentified) for pair in combinations(known.names, 2))


def _pair(known: SideInformation, pair: tuple[str, str], unidentified: Sequence[str]) -> EdgeKnowledge:
    if known.independent:
        return EdgeKnowledge(pair, "absent", "absent: the nodes are declared independent")
    missing = [node for node in pair if node in unidentified]
    if missing:
        return EdgeKnowledge(pair, "meaningless", f"meaningless: {_are_not(missing)} identified")
    if unidentified:
        reason = f"association identified; whether it is direct is not: {_are_not(unidentified)} identified"
        return EdgeKnowledge(pair, "association", reason)
    return _direction(known, pair)


def _are_not(nodes: Sequence[str]) -> str:
    return f"{nodes[0]} is not" if len(nodes) == 1 else f"{', '.join(nodes[:-1])} and {nodes[-1]} are not"


def _direction(known: SideInformation, pair: tuple[str, str]) -> EdgeKnowledge:
    first, second = (known.tier(node) for node in pair)
    if first is not None and second is not None and first != second:
        earlier, later = pair if first < second else pair[::-1]
        return EdgeKnowledge(pair, "direction", f"presence identified; {earlier} -> {later} by tiers")
    targets = [node for node in pair if node in known.targets("do", "soft")]
    if targets:
        return EdgeKnowledge(pair, "direction", f"presence and direction identified: intervention on {targets[0]}")
    if _one_is_an_unknown_target(known):
        reason = "presence and direction identified: at most one node is no target of an intervention"
        return EdgeKnowledge(pair, "direction", reason)
    return EdgeKnowledge(pair, "presence", "presence identified, direction up to Markov equivalence")


def _one_is_an_unknown_target(known: SideInformation) -> bool:
    """Whether of any two nodes one is a target, even where the unknown targets are nodes that are known as soft."""
    hard, soft = set(known.targets("do")), set(known.targets("soft"))
    covered = max(len(hard | soft), len(hard) + known.n_unknown("do"))
    return len(known.names) - covered <= 1
