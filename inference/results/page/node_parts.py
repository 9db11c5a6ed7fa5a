"""Node by node: what it means, how much of every modality it explains, and what distinguishes its outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.results.figures.node_outcomes import MOST_NODES
from inference.results.meaning import is_named
from inference.results.page.parts import Part
from inference.results.page.pictures import OutcomePictures
from inference.results.text import printable, shorten

__all__ = ["node_parts"]

Summary = Mapping[str, Any]

_NAME_WIDTH = 40
_MOST_OUTCOMES = 12


def node_parts(summary: Summary, outcome_names: Sequence[Sequence[str]], pictures: OutcomePictures) -> list[Part]:
    """A part per node, the first twelve."""
    nodes = list(zip(summary["nodes"], outcome_names, strict=True))[:MOST_NODES]
    return [
        Part(
            shorten(node, _NAME_WIDTH),
            _note(summary, node),
            [_outcomes(outcomes), *_explained(summary, node)],
            pictures=pictures.get(node, []),
        )
        for node, outcomes in nodes
    ]


def _note(summary: Summary, node: str) -> str:
    """That it is a feature, or no more than a coordinate."""
    if len(summary["nodes"]) == 1 and (summary.get("labelling") or {}).get("source", "none") == "none":
        return "numbers the groups"
    if is_named(summary):
        return "feature"
    identified = (summary.get("identifiability") or {}).get("identified_nodes", ())
    return "feature" if node in identified else "not identified: an arbitrary coordinate, no feature"


def _outcomes(names: Sequence[str]) -> str:
    shown = ", ".join(shorten(name, _NAME_WIDTH) for name in names[:_MOST_OUTCOMES])
    more = f" and {len(names) - _MOST_OUTCOMES} more" if len(names) > _MOST_OUTCOMES else ""
    return f"{len(names)} outcomes: {shown}{more}."


def _explained(summary: Summary, node: str) -> list[str]:
    """Shares of variance, the largest first, beside those of the same clusters named at random."""
    found = {
        printable(name): (shares["nodes"][node], shares["random_labelling"][node])
        for name, shares in (summary.get("variance_explained") or {}).items()
        if node in shares["nodes"]
    }
    ordered = sorted(found.items(), key=lambda entry: -entry[1][0])
    listed = ", ".join(f"{name} {_percent(share)} ({_percent(chance)})" for name, (share, chance) in ordered)
    return [f"Variance explained (in brackets: by the same clusters named at random): {listed}."] if listed else []


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
