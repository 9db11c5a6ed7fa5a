"""The report: what remains undetermined, for people and for machines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from inference.identifiability.counting import Remaining
from inference.identifiability.edges import EdgeKnowledge
from inference.identifiability.side_information import SideInformation
from inference.identifiability.suggestions import Suggestion

__all__ = ["IdentifiabilityReport"]

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
