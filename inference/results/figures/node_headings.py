"""Names of nodes where they head something: those that are not identified say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.results.text import shorten

__all__ = ["NOT_IDENTIFIED", "node_heading", "node_headings", "nodes_heading", "unnamed_note"]

NOT_IDENTIFIED = " (not identified)"

Identifiability = Mapping[str, Any] | None


def node_heading(name: str, identifiability: Identifiability, width: int) -> str:
    """The name of one node, `phase (not identified)` where others are identified and it is not.

    Where no node is identified, all are coordinates without a name: `nodes_heading` and `unnamed_note` say so once.

    Args:
        name: Of the node.
        identifiability: The entry of a summary; None: nothing gave the nodes a meaning.
        width: Most characters of the name itself.
    """
    identified = _identified(identifiability)
    return shorten(name, width) + (NOT_IDENTIFIED if identified and name not in identified else "")


def node_headings(names: Sequence[str], identifiability: Identifiability, width: int) -> list[str]:
    """The same for several."""
    return [node_heading(name, identifiability, width) for name in names]


def nodes_heading(names: Sequence[str], identifiability: Identifiability, width: int = 16) -> str:
    """All nodes together: `(hue, phase (not identified))`, or `coordinates (N1, N2), unnamed`."""
    listed = f"({', '.join(node_headings(names, identifiability, width))})"
    return listed if _identified(identifiability) else f"coordinates {listed}, unnamed"


def unnamed_note(identifiability: Identifiability) -> str:
    """That the nodes of a figure are coordinates; empty where one of them is identified."""
    if _identified(identifiability):
        return ""
    return "The nodes are unnamed: coordinates under one of several labellings, and another mixes them."


def _identified(identifiability: Identifiability) -> Sequence[str]:
    names: Sequence[str] = (identifiability or {}).get("identified_nodes", ())
    return names
