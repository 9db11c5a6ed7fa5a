"""From side information to the report."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, combinations, product
from typing import Any, Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

from causalpima.inference.clusters.clustering import (
    TOO_UNCLEAR_ENTROPY,
    cell_sizes,
    fit_status,
    mean_entropy,
    misassigned,
    occupied,
)
from causalpima.inference.clusters.counting import Recount, VisibleOrder, count_labellings, log10_labellings, recount

__all__ = [
    "LARGEST_OVERLAP",
    "EdgeKnowledge",
    "Environment",
    "IdentifiabilityReport",
    "Remaining",
    "SideInformation",
    "Status",
    "Suggestion",
    "alike_levels",
    "claimed",
    "count_remaining",
    "edge_knowledge",
    "find_identified",
    "identification",
    "identify",
    "identify_known",
    "read_environment",
    "recount_found",
    "remaining_readings",
    "suggest",
    "unclear",
]


# What is known besides the measurements: masks, labels, tiers, environments, independence.


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


# Which nodes have one meaning, and as what the others may be read.


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


# What can be known of the edge between two nodes.


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


# The number of labellings that side information leaves.


_ROUNDING = 1e-9
_MOST_WRITTEN = 10**15


@dataclass(frozen=True)
class Remaining:
    """A number of labellings.

    Attributes:
        count: The number; None if it has more than 1000 digits.
        log10: Its decimal logarithm.
        is_exact: Whether it is the number itself, given that every cell occurs and modalities tell all their visible
            combinations apart; else an upper bound.
    """

    count: int | None
    log10: float
    is_exact: bool = True

    @property
    def is_one(self) -> bool:
        """Whether nothing remains to be settled."""
        return self.log10 < _ROUNDING

    def __str__(self) -> str:
        """The number, as one reads it: 840, or 10^13007."""
        if self.count is not None and self.count < _MOST_WRITTEN:
            return f"{self.count:,}".replace(",", " ") if self.count >= 10_000 else str(self.count)
        return f"10^{self.log10:.0f}"


def count_remaining(known: SideInformation) -> Remaining:
    """Count the labellings that fit equally well, modulo those that only rename or exchange what nothing names.

    Labels and masks: exactly, by `count_labellings`. Declared independence leaves one, but for shares of outcomes that
    happen to let another labelling be independent, too (as equal shares do): the logarithms of the masses of the cells
    are sums of one term per node, and for almost all terms no other arrangement of the same masses is such a sum.
    Environments that set a node mark the cells of every outcome, and count as labels of the node. What else
    environments say depends on the graph (other nodes keep their factors, which may tell some of them apart), so that
    with them the number is an upper bound: that of the unknown targets that leave most. Soft environments and tiers
    settle no labelling for certain, but name nodes, which are then no more exchanged.
    """
    if known.independent:
        return Remaining(1, 0.0)
    counts = [_count(known, nodes) for nodes in known.possible_known()]
    count, log10 = max(counts, key=lambda found: found[1])
    return Remaining(count, log10, not known.environments or log10 < _ROUNDING)


def _count(known: SideInformation, nodes: tuple[str, ...]) -> tuple[int | None, float]:
    outcomes, visible = known.outcomes, known.visible_positions
    labelled, kinds = known.positions(nodes), known.kinds()
    log10 = log10_labellings(outcomes, visible, labelled=labelled, kinds=kinds)
    return count_labellings(outcomes, visible, labelled=labelled, kinds=kinds), max(log10, 0.0)


# Which single addition to what is known would settle most.


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


# The report: what remains undetermined, for people and for machines.


_MOST_SHOWN = 5
_MOST_IN_FILE = 20
_WIDTH = 100

_CELLS_OCCUR = "every cell occurs, and every modality tells all combinations of its nodes apart; else more remain"
_SET_NODES = (
    "a do-environment sets its node to one outcome, so that only the cells of this outcome occur in it; nodes of more "
    "outcomes need one for all but one of them"
)
_UNKNOWN_TARGETS = "environments of unknown target have targets that differ from each other and from the known ones"
_INDEPENDENT = "no other arrangement of the cells is independent, too, as it can be where outcomes are equally common"
_FAITHFUL = "the distribution is faithful to the graph, and there are enough samples"


@dataclass(frozen=True)
class IdentifiabilityReport:
    """What side information leaves undetermined, before anything is fitted.

    Attributes:
        known: Nodes and side information.
        remaining_labellings: Labellings that fit equally well.
        identified_nodes: Nodes that all of these read alike.
        remaining: What the other nodes may be read as, in words.
        edges: What can be known of every pair of nodes.
        suggestions: Single additions that settle something, best first.
    """

    known: SideInformation
    remaining_labellings: Remaining
    identified_nodes: tuple[str, ...]
    remaining: tuple[str, ...]
    edges: tuple[EdgeKnowledge, ...]
    suggestions: tuple[Suggestion, ...]

    @property
    def equivalent_labellings(self) -> int | None:
        """Number of labellings that fit equally well; None if it has more than 1000 digits."""
        return self.remaining_labellings.count

    @property
    def is_exact(self) -> bool:
        """Whether the number is exact under the assumptions; with environments it is an upper bound."""
        return self.remaining_labellings.is_exact

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the report takes for granted."""
        environments = self.known.environments
        return (
            _CELLS_OCCUR,
            *([_SET_NODES] if any(each.kind == "do" for each in environments) else []),
            *([_UNKNOWN_TARGETS] if any(each.target is None for each in environments) else []),
            *([_INDEPENDENT] if self.known.independent else []),
            _FAITHFUL,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them; `equivalent_labellings` is null where its logarithm has to do."""
        return {
            **asdict(self.known),
            "equivalent_labellings": self.equivalent_labellings,
            "log10_equivalent_labellings": self.remaining_labellings.log10,
            "is_exact": self.is_exact,
            "assumptions": list(self.assumptions),
            "identified_nodes": list(self.identified_nodes),
            "remaining": list(self.remaining),
            "edges": [{**asdict(edge), "nodes": list(edge.nodes)} for edge in self.edges],
            "suggestions": [_plain(suggestion) for suggestion in self.suggestions[:_MOST_IN_FILE]],
        }

    def text(self) -> str:
        """The report as lines for a terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _wrapped(self._headline())
        yield f"identified nodes: {', '.join(self.identified_nodes) or 'none'}"
        for reading in self.remaining:
            yield from _wrapped(reading, "- ")
        if self.edges:
            yield ""
            yield "edges:"
            width = max(len(" - ".join(edge.nodes)) for edge in self.edges)
            yield from (f"  {' - '.join(edge.nodes):{width}}  {edge.reason}" for edge in self.edges)
        yield from self._suggestion_lines()
        yield ""
        yield "assumed:"
        for assumption in self.assumptions:
            yield from _wrapped(assumption, "- ")

    def _headline(self) -> str:
        number, cells = self.remaining_labellings, "if every cell occurs"
        if number.is_one:
            return f"one labelling remains, up to names of outcomes and exchanges of like nodes ({cells})"
        bound = "at least" if self.is_exact else "at most"
        return f"{bound} {number} labellings fit equally well ({'exactly as many ' if self.is_exact else ''}{cells})"

    def _suggestion_lines(self) -> Iterator[str]:
        if not self.suggestions:
            return
        yield ""
        yield "what would settle most:"
        shown = [(str(s.remaining), s) for s in self.suggestions[:_MOST_SHOWN]]
        width = max(len(number) for number, _ in shown)
        for number, s in shown:
            yield f"  {number:>{width}} left  {s.text}{self._open_edges(s)}"

    def _open_edges(self, suggestion: Suggestion) -> str:
        if not self.remaining_labellings.is_one:
            return ""
        return f" (edges with something open: {suggestion.n_open_edges} of {len(self.edges)})"


def _plain(suggestion: Suggestion) -> dict[str, Any]:
    return {
        "kind": suggestion.kind,
        "nodes": list(suggestion.nodes),
        "text": suggestion.text,
        "equivalent_labellings": suggestion.remaining.count,
        "log10_equivalent_labellings": suggestion.remaining.log10,
        "is_exact": suggestion.remaining.is_exact,
        "identified_nodes": list(suggestion.identified),
        "open_edges": suggestion.n_open_edges,
    }


def _wrapped(text: str, bullet: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=bullet, subsequent_indent=" " * len(bullet))


def identify(
    nodes: Mapping[str, int],
    mask: Mapping[str, Sequence[str]] | None = None,
    labels: Collection[str] = (),
    tiers: Sequence[Collection[str]] = (),
    environments: Iterable[str | Environment] = (),
    independent: bool = False,
) -> IdentifiabilityReport:
    """What side information leaves undetermined: labellings, nodes, edges; and which addition would settle most.

    Args:
        nodes: Outcomes of each node, by name.
        mask: Nodes that each modality sees; none: every modality sees all.
        labels: Nodes whose outcome is known of some samples of every cell.
        tiers: Nodes in order of time, earlier ones first; a node may be in none.
        environments: Experiments besides the observational data: `do(N1)`, `do(N1=0)`, `soft(N1)`, `do(?)`.
        independent: The nodes are known to be independent of each other.

    Raises:
        ValueError: A node that is not there, is seen by no modality, or has fewer than two outcomes; tiers that
            overlap; an environment that can't be read.

    Example:
        >>> report = identify({"N1": 2, "N2": 2, "N3": 2}, {"a": ("N1", "N2"), "b": ("N2", "N3")})
        >>> report.equivalent_labellings, report.identified_nodes
        (4, ('N2',))
        >>> report.suggestions[0].text
        'measure a modality that sees N1 and N3 but not N2'
    """
    known = SideInformation(
        nodes,
        {name: tuple(seen) for name, seen in (mask or {}).items()},
        tuple(labels),
        tuple(map(tuple, tiers)),
        tuple(read_environment(each) if isinstance(each, str) else each for each in environments),
        independent,
    )
    return identify_known(known)


def identify_known(known: SideInformation) -> IdentifiabilityReport:
    """The same of side information that was read before."""
    identified = find_identified(known)
    return IdentifiabilityReport(
        known,
        count_remaining(known),
        identified,
        remaining_readings(known),
        edge_knowledge(known, identified),
        suggest(known),
    )


# The cells that occur and the levels that each modality tells apart, as a fit found them; and the count from there.


LARGEST_OVERLAP = 0.25
"""Two levels are alike if this share of one of them, or more, lies among the samples assigned to the other."""


def recount_found(
    outcomes: Sequence[int],
    visible: Sequence[Collection[int]] | None,
    cells: np.ndarray,
    levels: Sequence[np.ndarray],
    *,
    labelled: Collection[int] = (),
) -> Recount:
    """Count the labellings that remain of a fit, with the cells that occur and the levels that modalities tell apart.

    Args:
        outcomes: Outcomes of each node, `[L]`.
        visible: Nodes that each modality sees, by position; None: all modalities see all, and count as one.
        cells: q(N|X) of the cells, row-major over the nodes, `[n, C]`.
        levels: For each modality the posterior of its levels given this modality alone, row-major over the nodes that
            it sees in the order of the nodes, `[n_m, K_m]`; of samples that have the modality.
        labelled: Nodes whose outcome is known for every cell.

    Raises:
        ValueError: Posteriors of other numbers of cells or levels than the nodes have.
    """
    sets = [range(len(outcomes))] if visible is None else [sorted(nodes) for nodes in visible]
    _check("cells", cells, math.prod(outcomes))
    if len(levels) != len(sets):
        raise ValueError(f"levels: expected one posterior for each of {len(sets)} modalities, got {len(levels)}")
    for posterior, nodes in zip(levels, sets, strict=True):
        _check("levels", posterior, math.prod(outcomes[node] for node in nodes))
    every = list(product(*map(range, outcomes)))
    there = [every[c] for c in np.flatnonzero(occupied(cell_sizes(cells)))]
    groups = [alike_levels(posterior) for posterior in levels]
    found = [
        [int(group[_level(cell, nodes, outcomes)]) for cell in there] for group, nodes in zip(groups, sets, strict=True)
    ]
    return recount(outcomes, visible, there, found, labelled=labelled)


def alike_levels(posterior: np.ndarray) -> np.ndarray:
    """Groups of levels that are not told apart: those connected by an overlap of `LARGEST_OVERLAP` or more.

    The overlap of levels i and j is max(P_ij, P_ji) with P_ij the share of i that lies among the samples assigned to j
    (as in `merge_components`). Levels without mass are in groups of their own: no occupied cell has them.

    Args:
        posterior: Of the levels, `[n, K]`, rows sum to 1.

    Returns:
        Number of the group of each level, `[K]`.
    """
    overlap = np.where(posterior.sum(0)[:, None] > 0, misassigned(posterior.T), 0.0)
    return connected_components(np.maximum(overlap, overlap.T) >= LARGEST_OVERLAP, directed=False)[1]


def _check(name: str, posterior: np.ndarray, expected: int) -> None:
    if posterior.ndim != 2 or posterior.shape[1] != expected:
        raise ValueError(f"{name}: expected a posterior of shape [n, {expected}], got {posterior.shape}")


def _level(cell: Sequence[int], nodes: Sequence[int], outcomes: Sequence[int]) -> int:
    """Number of the visible combination, row-major."""
    return int(np.ravel_multi_index([cell[n] for n in nodes], [outcomes[n] for n in nodes]))


# What is undetermined of the nodes of a finished fit: the report before it, recounted with what it found.


_MOST_SUGGESTED = 3


def identification(
    known: SideInformation, labelling: Mapping[str, Any] | None, cells: np.ndarray, levels: Sequence[np.ndarray]
) -> dict[str, Any]:
    """The entry `identifiability` of a summary.

    Environments, read-outs and independence leave the labellings that their own search could not tell from the best;
    everything else is counted with the cells that occur and the levels that the modalities tell apart. The modality
    that sees all, where there is no mask, tells the cells apart as well as they are. Labels too few to settle the
    outcomes of their node count as none.

    Clusters that collapsed identify nothing, whatever labels or names say of them; clusters that are not clean
    (`unclear`) identify nothing but what labels or names say.

    Args:
        known: Nodes and side information.
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`), or None.
        cells: q(N|X), `[n, C]`.
        levels: Under a mask, per modality, the posterior of its levels given it alone; else empty.
    """
    before, settled = identify_known(known), _settled(known, labelling)
    if settled != known:
        return {**identification(settled, labelling, cells, levels), "before": before.to_dict()}
    named = tuple((labelling or {}).get("named_nodes", ()))
    remaining = ((labelling or {}).get("details") or {}).get("n_remaining")
    if reason := unclear(cells, (labelling or {}).get("source", "none")):
        return _entry(before, Recount(None, 1, reason), ())
    if remaining is not None and (named or remaining > 1):
        found = Recount(remaining, remaining) if named else Recount(None, remaining)
        return _entry(before, found, named)
    visible = known.visible_positions
    found = recount_found(
        known.outcomes, visible, cells, levels if levels else [cells], labelled=known.positions(known.labels)
    )
    return _entry(before, found, _identified(before, found))


def unclear(cells: np.ndarray, source: str = "none") -> str:
    """Why clusters are too unclear for anything to be said of nodes; empty where they are not.

    What people say of clusters by names and labels holds for overlapping ones, too, as long as they are there.

    Args:
        cells: q(N|X), `[n, C]`.
        source: Where the meaning of the cells comes from.
    """
    if fit_status(cells) != "ok":
        return "the clusters collapsed"
    if source not in ("labels", "names") and (entropy := mean_entropy(cells)) > TOO_UNCLEAR_ENTROPY:
        return f"the clusters are not clean: mean entropy {entropy:.2f} nats, more than {TOO_UNCLEAR_ENTROPY}"
    return ""


def claimed(labelling: Mapping[str, Any], identifiability: Mapping[str, Any], cells: np.ndarray) -> dict[str, Any]:
    """The entry `labelling` of a summary: nodes named are those that `identification` identifies, no other.

    Where clusters are `unclear`, `details.withheld` has the nodes that would have been named, and the reason.

    Args:
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`).
        identifiability: That of `identification`.
        cells: q(N|X), `[n, C]`.
    """
    told = list(labelling["named_nodes"])
    named = [name for name in told if name in identifiability["identified_nodes"]]
    reason = "" if labelling["source"] == "none" else unclear(cells, labelling["source"])
    withheld = {"withheld": {"nodes": told, "reason": reason}} if reason else {}
    return {**labelling, "named_nodes": named, "details": {**labelling["details"], **withheld}}


def _settled(known: SideInformation, labelling: Mapping[str, Any] | None) -> SideInformation:
    """What is known, without labels that are too few to settle the outcomes of their node."""
    if labelling is None or labelling["source"] != "labels":
        return known
    return replace(known, labels=tuple(name for name in known.labels if name in labelling["named_nodes"]))


def _identified(before: IdentifiabilityReport, found: Recount) -> tuple[str, ...]:
    """Those of before, as long as the fit found what was presupposed; else those that have labels."""
    if found.count is not None and found.count == before.equivalent_labellings:
        return before.identified_nodes
    return before.known.names if found.count == 1 else tuple(before.known.labels)


def _entry(before: IdentifiabilityReport, found: Recount, identified: Sequence[str]) -> dict[str, Any]:
    names = before.known.names
    is_named = set(identified) == set(names)
    return {
        "equivalent_labellings": found.count,
        "at_least": found.at_least,
        "reason": found.reason,
        "identified_nodes": [name for name in names if name in identified],
        "is_named": is_named,
        "suggestions": [] if is_named else [s.text for s in before.suggestions[:_MOST_SUGGESTED]],
        "before": before.to_dict(),
    }
