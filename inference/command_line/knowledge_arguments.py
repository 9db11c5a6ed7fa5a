"""The flags `--knowledge.forbid`, `.require`, `.tiers` and `.designed`: edges and nodes with commas between them.

`A->B,B->C` is a list of edges and `A,B;C` one of tiers. A name that holds a comma or a semicolon stands in a list in
JSON: `--knowledge.forbid '["a,b->c"]'`. Files of settings have lists or the same text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from jsonargparse import ArgumentParser

from inference.command_line.flag_types import FlagError
from inference.graphs.edge_text import ARROW
from inference.training.side_information_config import KnowledgeConfig

__all__ = ["add_knowledge_arguments", "knowledge_of", "read_edges", "read_nodes", "read_tiers"]

_FLAGS = ("forbid", "require", "tiers", "designed")


def add_knowledge_arguments(parser: ArgumentParser) -> None:
    """Let a parser have the four flags; `knowledge_of` makes a `KnowledgeConfig` of what it parsed."""
    group = parser.add_argument_group("What is known of the graph (docs/knowledge.md)")
    add = group.add_argument
    add("--knowledge.forbid", type=_forbid, default=(), metavar="A->B,B->C", help="Edges that are not there.")
    add("--knowledge.require", type=_require, default=(), metavar="A->B", help="Edges that are there.")
    add("--knowledge.tiers", type=_tiers, default=(), metavar="A,B;C", help="Nodes in order of time, tier by tier.")
    add("--knowledge.designed", type=_designed, default=(), metavar="A,B", help="Nodes that were set: no causes.")


def knowledge_of(found: Any) -> KnowledgeConfig:
    """What the flags declare; `inference.graphs.knowledge.graph_knowledge` checks it against the nodes.

    Args:
        found: The entry `knowledge` of what a parser with these flags parsed.
    """
    return KnowledgeConfig(**{name: found[name] or () for name in _FLAGS})


def read_edges(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Edges, one text each.

    Args:
        name: Name of the flag, for messages.
        value: `A->B,B->C` (or with the arrow of Unicode), a list in JSON, or a list.

    Raises:
        ValueError: An entry without an arrow.

    >>> read_edges("knowledge.forbid", "a->b, b->c")
    ('a->b', 'b->c')
    """
    entries = read_nodes(name, value)
    odd = next((entry for entry in entries if not ARROW.search(entry)), None)
    if odd is not None:
        raise ValueError(
            f"{name}: expected edges as A->B with commas between them, got {odd!r}; a name with a comma stands in a "
            "list in JSON"
        )
    return entries


def read_nodes(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Names: `A,B`, a list in JSON, or a list.

    Args:
        name: Name of the flag, for messages.
        value: The value.

    Raises:
        ValueError: A name that is empty or none.

    >>> read_nodes("knowledge.designed", "dose, batch")
    ('dose', 'batch')
    """
    names = _entries(value, ",")
    if not _are_names(names):
        raise ValueError(f"{name}: expected names with commas between them, got {value!r}")
    return tuple(names)


def read_tiers(name: str, value: str | Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Tiers: `A,B;C`, a list of lists in JSON, or a list of lists.

    Args:
        name: Name of the flag, for messages.
        value: The value.

    Raises:
        ValueError: A name that is empty or none.

    >>> read_tiers("knowledge.tiers", "sex,age; dose")
    (('sex', 'age'), ('dose',))
    """
    tiers = _entries(value, ";")
    groups = [_entries(tier, ",") for tier in tiers] if isinstance(tiers, list | tuple) else [None]
    if not all(map(_are_names, groups)):
        raise ValueError(f"{name}: expected tiers as A,B;C, or a list of lists, got {value!r}")
    return tuple(tuple(group or ()) for group in groups)


def _forbid(value: Any) -> Any:
    return _as_flag(read_edges, "knowledge.forbid", value)


def _require(value: Any) -> Any:
    return _as_flag(read_edges, "knowledge.require", value)


def _tiers(value: Any) -> Any:
    return _as_flag(read_tiers, "knowledge.tiers", value)


def _designed(value: Any) -> Any:
    return _as_flag(read_nodes, "knowledge.designed", value)


def _as_flag(read: Callable[[str, Any], Any], name: str, value: Any) -> Any:
    try:
        return read(name, value)
    except ValueError as error:
        raise FlagError(str(error)) from error


def _entries(value: Any, separator: str) -> Any:
    """Parts of a text, or what it is in JSON; anything else as it is."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(separator)]
    try:
        return json.loads(value)
    except ValueError:
        return None


def _are_names(names: Any) -> bool:
    return isinstance(names, list | tuple) and all(isinstance(name, str) and name for name in names)
