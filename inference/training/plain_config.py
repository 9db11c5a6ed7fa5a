"""From nested plain values, as files have them, back to the dataclasses of a configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["from_plain"]

T = TypeVar("T")


def from_plain(kind: type[T], values: Mapping[str, Any]) -> T:
    """An object of a dataclass; the inverse of `dataclasses.asdict` for nested dataclasses, mappings and tuples.

    Args:
        kind: The dataclass.
        values: Its fields by name; those that are not there keep their defaults.

    Raises:
        ValueError: A field that the dataclass does not have.
    """
    hints = get_type_hints(kind)
    odd = sorted(set(values) - set(hints))
    if odd:
        raise ValueError(f"{kind.__name__}: expected settings {', '.join(hints)}, got {', '.join(odd)}")
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value)
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], entry) for entry in value)
    arguments = get_args(hint)
    if isinstance(value, Mapping) and len(arguments) == 2 and dataclasses.is_dataclass(arguments[1]):
        return {key: _value(arguments[1], entry) for key, entry in value.items()}
    return value
