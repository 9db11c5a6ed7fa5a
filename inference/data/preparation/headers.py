"""Column headers: name and units apart, and names that a file's variables may have."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Header", "clean_name", "parse_header"]

_BRACKETED = re.compile(r"^(?P<name>.*?)\s*[\[(]\s*(?P<units>[^\[\]()]*?)\s*[\])]$")
_AFTER_SLASH = re.compile(r"^(?P<name>.+?)\s+/\s+(?P<units>\S+)$")


@dataclass(frozen=True)
class Header:
    """A column's name and units; empty where the header does not say."""

    name: str
    units: str


def parse_header(text: str) -> Header:
    """Name and units, written in brackets or after a slash with spaces around it.

    >>> parse_header("Stress (MPa)"), parse_header("Stress / MPa"), parse_header("km/h")
    (Header(name='Stress', units='MPa'), Header(name='Stress', units='MPa'), Header(name='km/h', units=''))
    """
    line = " ".join(text.split())
    match = _BRACKETED.match(line) or _AFTER_SLASH.match(line)
    return Header(match["name"], match["units"]) if match else Header(line, "")


def clean_name(text: str) -> str:
    """Letters, digits and underscores only, so that flags, files and attributes can bear the name.

    >>> clean_name("Yield strength, 0.2 %"), clean_name("[%]")
    ('Yield_strength_0_2', '')
    """
    return re.sub(r"\W+", "_", text).strip("_")
