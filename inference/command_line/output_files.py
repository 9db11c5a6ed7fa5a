"""Places that a command is to write to, checked before the work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from inference.results.files import OutputError
from inference.results.run_folder import RunFolder

__all__ = ["can_write_into", "check_netcdf_name", "check_output_files", "check_output_folder"]

_FOLDERS_OF_A_RUN = ("checkpoint", "restarts", "folds")


def can_write_into(folder: Path) -> bool:
    """Whether it is a folder in which files can be made."""
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def check_output_files(run: Path | None = None, inputs: Iterable[Path | None] = (), **files: Path | None) -> None:
    """Refuse files that cannot be written, and files that are needed as they are.

    Args:
        run: Folder of a run that is read: what it cannot do without is not overwritten.
        inputs: Files that are read.
        files: By the name of the flag.

    Raises:
        OutputError: The first of them that cannot be written, is read, too, or is named by two flags.
    """
    taken = {_place(path) for path in inputs if path is not None}
    for flag, path in files.items():
        if path is None:
            continue
        if path.is_dir() or not can_write_into(path.absolute().parent):
            raise OutputError(f"{flag}: expected a file in a folder that you may write to, got {path}; name another")
        if _place(path) in taken:
            raise OutputError(
                f"{flag}: expected a file of its own, got {path}, which is read or written, too; name another"
            )
        if run is not None and _is_needed(_place(path), run):
            raise OutputError(f"{flag}: expected another file than those of the run, got {path}; name another")
        taken.add(_place(path))


def check_output_folder(**folders: Path | None) -> None:
    """Refuse folders that are files.

    Args:
        folders: By the name of the flag.

    Raises:
        OutputError: The first of them that is one.
    """
    for flag, path in folders.items():
        if path is not None and path.exists() and not path.is_dir():
            raise OutputError(f"{flag}: expected a folder, got the file {path}; name another")


def _place(path: Path) -> Path:
    """The file itself, whatever the way to it."""
    return Path(os.path.realpath(path))


def _is_needed(place: Path, run: Path) -> bool:
    """Whether it is one of the files from which a run is read or continued; its page can be written anew."""
    folder = RunFolder(_place(run))
    needed = {*folder.files, folder.path / "mcmc.nc"} - {folder.report}
    return place in needed or any(folder.path / name in place.parents for name in _FOLDERS_OF_A_RUN)


def check_netcdf_name(output: Path) -> None:
    """Refuse a name that says another format.

    Raises:
        ValueError: It does not end with .nc.
    """
    if output.suffix != ".nc":
        raise ValueError(f"output: expected a name that ends with .nc, got {output}; it will be netCDF")
