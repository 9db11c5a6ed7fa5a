"""Edges as text: `cause->effect`, with names of nodes that may hold nearly anything."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["ARROW", "edge_text", "read_edge"]

ARROW = re.compile("->|\N{RIGHTWARDS ARROW}")
"""Both arrows that stand between a cause and its effect."""


def read_edge(name: str, text: str, nodes: Sequence[str]) -> tuple[str, str]:
    """Cause and effect; an arrow within a name of a node is told from the one between two names.

    Args:
        name: What the text is a value of, for messages.
        text: `cause->effect`, blanks around the names do not matter.
        nodes: Names of all nodes.

    Raises:
        ValueError: No edge, a node that is not there, or a text that can be read in two ways.

    >>> read_edge("forbid", "a->b -> c", ["a->b", "c"])
    ('a->b', 'c')
    """
    pairs = [(text[: at.start()].strip(), text[at.end() :].strip()) for at in ARROW.finditer(text)]
    if not pairs:
        raise ValueError(f"{name}: expected edges as CAUSE->EFFECT with commas between them, got {text!r}")
    known = [pair for pair in pairs if set(pair) <= set(nodes)]
    if len(known) == 1:
        return known[0]
    if known:
        raise ValueError(f"{name}: expected an edge that can be read in one way, got {text!r}; rename these nodes")
    raise ValueError(f"{name}: expected nodes among {', '.join(nodes)}, got {_odd(pairs, nodes)!r} in {text!r}")


def edge_text(cause: str, effect: str) -> str:
    """The text of an edge: what `read_edge` reads."""
    return f"{cause}->{effect}"


def _odd(pairs: Sequence[tuple[str, str]], nodes: Sequence[str]) -> str:
    """A name that is none, of the reading in which most names are nodes."""
    best = max(pairs, key=lambda pair: sum(end in nodes for end in pair))
    return next(end for end in best if end not in nodes)
