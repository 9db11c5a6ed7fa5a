"""Types of flags: from the text of a flag to its value, or one line that says what was expected."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

__all__ = ["FlagError", "comma_names", "count", "optional_path", "whole_number"]


class FlagError(ValueError, ArgumentTypeError):
    """The one for values in files, the other for flags: only of these does the parser pass the message on."""


def whole_number(value: Any, least: int = 0) -> int:
    """A whole number that is not negative, or not below another bound."""
    if not re.fullmatch(r"\d{1,18}", str(value)) or int(value) < least:
        raise FlagError(f"expected a whole number >= {least}, got {value}")
    return int(value)


def count(value: Any) -> int:
    """A whole number of at least one."""
    return whole_number(value, least=1)


def comma_names(value: Any) -> tuple[str, ...]:
    """`a,b`: names with commas between them."""
    words = tuple(word.strip() for word in str(value).split(","))
    if not all(words):
        raise FlagError(f"expected names with commas between them, got {str(value)!r}")
    return words


def optional_path(value: str | None) -> Path | None:
    """The path of a flag that may be left out."""
    return None if value is None else Path(value)
