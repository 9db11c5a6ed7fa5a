"""Types of flags: from the text of a flag to its value, or one line that says what was expected."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import Any

__all__ = ["FlagError", "comma_names", "count", "whole_number"]


class FlagError(ValueError, ArgumentTypeError):
    """The one for values in files, the other for flags: only of these does the parser pass the message on."""


def whole_number(value: Any) -> int:
    """A whole number that is not negative."""
    if not re.fullmatch(r"\d{1,18}", str(value)):
        raise FlagError(f"expected a whole number >= 0, got {value}")
    return int(value)


def count(value: Any) -> int:
    """A whole number of at least one."""
    if whole_number(value) < 1:
        raise FlagError(f"expected a whole number >= 1, got {value}")
    return int(value)


def comma_names(value: Any) -> tuple[str, ...]:
    """`a,b`: names with commas between them."""
    words = tuple(word.strip() for word in str(value).split(","))
    if not all(words):
        raise FlagError(f"expected names with commas between them, got {str(value)!r}")
    return words
