"""Versions of the libraries behind a result."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

__all__ = ["library_versions"]

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
