"""Versions behind a result: of the libraries, and of the format in which the program writes its own files."""

from __future__ import annotations

import operator
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

__all__ = ["FORMAT", "FORMAT_KEY", "FormatError", "check_format", "file_attributes", "library_versions"]

FORMAT_KEY = "causalpima_format"
"""Entry of every JSON, YAML and netCDF file of the program; a file without it is older, or not of this program."""
FORMAT = 1
"""Version of the files that this program writes; it rises when an older program could misread them."""

_LIBRARIES = ("causalpima", "torch", "pyro-ppl", "numpy", "scipy", "scikit-learn", "xarray", "arviz", "safetensors")


def library_versions() -> dict[str, str]:
    """Version of Python and of each library that is installed; nothing is imported for it."""
    found = {library: _version(library) for library in _LIBRARIES}
    return {"python": platform.python_version()} | {library: known for library, known in found.items() if known}


@cache
def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


class FormatError(ValueError):
    """A file of a format that this program does not know; the message is one line and names the file."""


def file_attributes() -> dict[str, str | int]:
    """Attributes by which a netCDF file is known as one of this program."""
    return {"inference_library": "causalPIMA", FORMAT_KEY: FORMAT}


def check_format(place: object, version: object) -> None:
    """Refuse a file that a newer program wrote.

    Args:
        place: The file, for the message.
        version: Its entry `FORMAT_KEY`; None where it has none.

    Raises:
        FormatError: It is newer, or no version.
    """
    if version is None:
        return
    try:
        number = operator.index(version)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1 or isinstance(version, bool):
        raise FormatError(
            f"{place}: expected {FORMAT_KEY} to be a whole number from 1, got {version!r}; write it again"
        )
    if number > FORMAT:
        raise FormatError(
            f"{place}: expected a file of format {FORMAT} or older, got format {number}, which a newer version of this "
            "program wrote; use that one"
        )
