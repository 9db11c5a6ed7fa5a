"""What is known besides the measurements: masks, labels, tiers, environments, independence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Literal

from inference.identifiability.visible_order import VisibleOrder

__all__ = ["Environment", "SideInformation", "read_environment"]

_ENVIRONMENT = re.compile(r"(?P<kind>do|soft)\((?P<target>[^()=]+)(=(?P<outcome>[^()=]+))?\)")


@dataclass(frozen=True)
class Environment:
    """An experiment in which one node was changed.

    Attributes:
        kind: `do`: the node is set to one of its outcomes, so that only the cells with this outcome occur. `soft`: its
            conditional distribution is another one; all cells may occur.
        target: The node, or None where it is not known which.
        outcome: The outcome that it is set to, where it is known.
    """

    kind: Literal["do", "soft"]
    target: str | None
    outcome: str | None = None


def read_environment(text: str) -> Environment:
    """An environment from `do(N1)`, `do(N1=0)`, `soft(N1)`, `do(?)` or `soft(?)`.

    Raises:
        ValueError: Anything else.

    >>> read_environment("do(N1)")
    Environment(kind='do', target='N1', outcome=None)
    """
    match = _ENVIRONMENT.fullmatch(text)
    if match is None or (match["kind"] == "soft" and match["outcome"]):
        raise ValueError(
            f"environments: expected do(NODE), do(NODE=OUTCOME) or soft(NODE), with ? for an unknown node, got {text!r}"
        )
    target = match["target"].strip()
    return Environment("do" if match["kind"] == "do" else "soft", None if target == "?" else target, match["outcome"])


@dataclass(frozen=True)
class SideInformation:
    """Nodes, and all that is known of them before the fit.

    Attributes:
        nodes: Outcomes of each node, by name.
        mask: Nodes that each modality sees; none: every modality sees all.
        labels: Nodes whose outcome is known of some samples of every cell.
        tiers: Nodes in order of time, earlier ones first; a node may be in none.
        environments: Experiments besides the observational data. Those of unknown target are taken to have targets that
            differ from each other and from the known ones.
        independent: The nodes are known to be independent of each other.
    """

    nodes: Mapping[str, int]
    mask: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    environments: tuple[Environment, ...] = ()
    independent: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", {name: int(outcomes) for name, outcomes in self.nodes.items()})
        object.__setattr__(self, "mask", {name: tuple(nodes) for name, nodes in self.mask.items()})
        few = [name for name, outcomes in self.nodes.items() if outcomes < 2]
        if few or not self.nodes:
            raise ValueError(f"nodes: expected one at least, of 2 outcomes at least, got {dict(self.nodes)}")
        self._check_names("mask", chain.from_iterable(self.mask.values()))
        self._check_names("labels", self.labels)
        self._check_names("tiers", chain.from_iterable(self.tiers))
        self._check_names("environments", (each.target for each in self.environments if each.target is not None))
        self._check_mask()
        self._check_tiers()
        self._check_unknown_targets()

    def _check_names(self, argument: str, names: Iterable[str]) -> None:
        unknown = [name for name in names if name not in self.nodes]
        if unknown:
            raise ValueError(f"{argument}: expected nodes among {', '.join(self.nodes)}, got {unknown[0]}")

    def _check_mask(self) -> None:
        unseen = [node for node in self.nodes if not any(node in seen for seen in self.visible)]
        if unseen:
            raise ValueError(
                f"mask: expected every node to be seen by a modality, got none that sees {unseen[0]}; nothing could be "
                "learned about it: add it to a modality, or leave it out of the nodes"
            )

    def _check_tiers(self) -> None:
        listed = list(chain.from_iterable(self.tiers))
        twice = [node for node in listed if listed.count(node) > 1]
        if twice:
            raise ValueError(f"tiers: expected every node in one tier at most, got {twice[0]} in several")

    def _check_unknown_targets(self) -> None:
        if self.n_free_targets < 0:
            most = self.n_free_targets + self.n_unknown("do")
            raise ValueError(
                f"environments: expected at most {most} of unknown target, as their targets are taken to be nodes of "
                f"their own, got {self.n_unknown('do')}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(self.nodes)

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Outcomes of the nodes."""
        return tuple(self.nodes.values())

    @property
    def visible(self) -> list[tuple[str, ...]]:
        """Nodes that each modality sees."""
        return list(self.mask.values()) or [self.names]

    def order(self) -> VisibleOrder:
        """Nodes ordered by which modalities see them, with what labels and interventions of known target fix."""
        return VisibleOrder.of(self.outcomes, self.visible_positions, self.positions(self.known))

    @property
    def visible_positions(self) -> list[set[int]]:
        """The same by position."""
        return [self.positions(seen) for seen in self.visible]

    def positions(self, nodes: Iterable[str]) -> set[int]:
        """Positions of nodes."""
        return {self.names.index(node) for node in nodes}

    def tier(self, node: str) -> int | None:
        """Number of the tier of a node, if it has one."""
        return next((number for number, tier in enumerate(self.tiers) if node in tier), None)

    def targets(self, *kinds: str) -> tuple[str, ...]:
        """Known targets of the environments of these kinds, each once, in the order of the nodes."""
        found = {each.target for each in self.environments if each.kind in kinds}
        return tuple(node for node in self.nodes if node in found)

    def n_unknown(self, *kinds: str) -> int:
        """Number of environments of these kinds whose target is not known."""
        return sum(each.target is None and each.kind in kinds for each in self.environments)

    @property
    def n_free_targets(self) -> int:
        """Number of nodes that are left when every do-environment, of known target or not, has its own."""
        return len(self.nodes) - len(self.targets("do")) - self.n_unknown("do")

    @property
    def set_nodes(self) -> tuple[str, ...]:
        """Nodes that were set to all of their outcomes but one, or to all: then every cell's outcome is known."""
        return tuple(node for node in self.targets("do") if self._n_set(node) >= self.nodes[node] - 1)

    def _n_set(self, node: str) -> int:
        outcomes = [each.outcome for each in self.environments if each.kind == "do" and each.target == node]
        unnamed = outcomes.count(None)
        return unnamed + len({outcome for outcome in outcomes if outcome is not None})

    @property
    def known(self) -> tuple[str, ...]:
        """Nodes whose outcome is known for every cell, by labels or because they were set."""
        return tuple(node for node in self.nodes if node in self.labels or node in self.set_nodes)

    def possible_known(self) -> list[tuple[str, ...]]:
        """Every set of nodes that may be known, given that the targets of some environments are not.

        An environment of unknown target tells the outcomes of a node apart if it has two of them.
        """
        others = [node for node in self.nodes if node not in self.targets("do")]
        chosen = combinations(others, self.n_unknown("do"))
        binary = ([node for node in nodes if self.nodes[node] == 2] for nodes in chosen)
        return [tuple(dict.fromkeys([*self.known, *nodes])) for nodes in binary]

    def kinds(self) -> Sequence[tuple[int | None, str | None]]:
        """What tells nodes apart besides masks and labels: their tier, and environments known to be theirs."""
        targets = self.targets("do", "soft")
        return [(self.tier(node), node if node in targets else None) for node in self.nodes]
