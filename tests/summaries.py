"""Entries of a summary that its schema does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from causalpima.inference.store.summary_schema import json_schema

__all__ = ["unknown_entries"]


def unknown_entries(summary: Mapping[str, Any]) -> list[str]:
    """Paths of what the program writes and the schema lacks; where the schema leaves an entry open, it is not read."""
    schema = json_schema()
    return list(_unknown(summary, schema, schema["$defs"], ""))


def _unknown(value: Any, kind: Any, known: Mapping[str, Any], where: str) -> Iterator[str]:
    if not isinstance(kind, Mapping):
        return
    if "$ref" in kind:
        yield from _unknown(value, known[kind["$ref"].rpartition("/")[2]], known, where)
    elif "anyOf" in kind:
        yield from (
            path
            for one in kind["anyOf"]
            if "type" not in one or one["type"] != "null"
            for path in _unknown(value, one, known, where)
        )
    elif isinstance(value, Mapping):
        properties, others = kind.get("properties"), kind.get("additionalProperties")
        for name, entry in value.items():
            if properties is not None and name not in properties:
                yield f"{where}{name}"
            else:
                yield from _unknown(entry, (properties or {}).get(name, others), known, f"{where}{name}/")
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from _unknown(entry, kind.get("items"), known, f"{where}{position}/")
