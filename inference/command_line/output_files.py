"""Places that a command is to write to, checked before the work."""

from __future__ import annotations

import os
from pathlib import Path

from inference.results.files import OutputError

__all__ = ["can_write_into", "check_netcdf_name", "check_output_files"]


def can_write_into(folder: Path) -> bool:
    """Whether it is a folder in which files can be made."""
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def check_output_files(**files: Path | None) -> None:
    """Refuse files that cannot be written.

    Args:
        files: By the name of the flag.

    Raises:
        OutputError: The first of them that cannot.
    """
    for flag, path in files.items():
        if path is not None and (path.is_dir() or not can_write_into(path.absolute().parent)):
            raise OutputError(f"{flag}: expected a file in a folder that you may write to, got {path}; name another")


def check_netcdf_name(output: Path) -> None:
    """Refuse a name that says another format.

    Raises:
        ValueError: It does not end with .nc.
    """
    if output.suffix != ".nc":
        raise ValueError(f"output: expected a name that ends with .nc, got {output}; it will be netCDF")
