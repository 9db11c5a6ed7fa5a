"""Files that are whole or absent: atomic writing, and errors that say what to do."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import operator
import os
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

__all__ = [
    "FORMAT",
    "FORMAT_KEY",
    "REPLACED",
    "FormatError",
    "OutputError",
    "check_format",
    "file_attributes",
    "is_of_the_machine",
    "is_out_of_memory",
    "is_partial",
    "library_versions",
    "make_folder",
    "remove_folder",
    "remove_partials",
    "to_json",
    "write_atomically",
    "write_bytes",
    "write_folder_atomically",
    "write_json",
    "write_text",
]


# Strict JSON of what results are made of.


_Plain = None | bool | int | float | str | list["_Plain"] | dict[str, "_Plain"]


def to_json(value: object, indent: int | None = 2) -> str:
    """Strict JSON of nested dicts, sequences, arrays, numbers and strings.

    NaN and infinities, for which JSON has no form, become null; NumPy scalars and arrays become numbers and lists.

    Args:
        value: What to write.
        indent: Spaces per level; None for one line.

    Raises:
        ValueError: `value` holds something else; the message says where.
    """
    return json.dumps(_plain(value, "value"), indent=indent, allow_nan=False, ensure_ascii=False)


def _plain(value: object, where: str) -> _Plain:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {_key(key, where): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Path):
        return str(value)
    kind = type(value).__name__
    raise ValueError(f"{where}: expected numbers, strings, arrays, lists or dicts, got {kind}; convert it")


def _key(key: object, where: str) -> str:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return str(int(key))
    raise ValueError(f"{where}: expected keys that are strings, got {key!r}; convert it")


# Versions behind a result: of the libraries, and of the format in which the program writes its own files.


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


REPLACED = "-replaced"
"""Ending of a folder that is being replaced; complete, and there only if the process was killed meanwhile."""

_PARTIAL = re.compile(r"^\..+-[0-9a-f]{8}\.partial(\.[^.]*)?$")

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space or choose a folder on another disk",
    errno.EDQUOT: "the disk quota is used up; free some space or choose a folder on another disk",
    errno.EACCES: "permission denied; choose a folder that you may write to",
    errno.EPERM: "permission denied; choose a folder that you may write to",
    errno.EROFS: "the file system is read-only; choose a folder that you may write to",
    errno.ENOENT: "its folder does not exist; create it or choose another one",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another path",
    errno.EISDIR: "a folder of that name is there; choose another name",
    errno.EEXIST: "a file of that name is there; remove it or choose another name",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.EFBIG: "it is larger than a file may be here; raise the limit or choose a folder on another disk",
}


class OutputError(ValueError):
    """A result could not be written; the message is one line and says what to do."""


def write_text(path: Path | str, text: str) -> None:
    """Write `text` as UTF-8, atomically.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path | str, value: object) -> None:
    """Write `value` as strict JSON, atomically; see `to_json`. A mapping begins with the version of the format.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
        ValueError: `value` holds something that JSON has no form for.
    """
    if isinstance(value, Mapping):
        value = {FORMAT_KEY: FORMAT} | {key: entry for key, entry in value.items() if key != FORMAT_KEY}
    write_text(path, to_json(value) + "\n")


def write_bytes(path: Path | str, content: bytes | memoryview) -> None:
    """Write `content`, atomically.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def write_atomically(path: Path | str, writer: Callable[[Path], object]) -> None:
    """Let `writer` fill a temporary file beside `path`, then put it in place.

    Whoever reads `path`, at any moment, finds the old file or the whole new one. The temporary name ends as `path`
    does, so that a writer may choose a format by it; what killed writers of the same file left is removed first. A
    device or pipe (`/dev/stdout`) is written directly.

    Args:
        path: File to write; its folder must exist.
        writer: Called with the temporary path.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    target = Path(path)
    with _explained(target):
        if target.exists() and not target.is_file() and not target.is_dir():
            writer(target)
            return
        target = Path(os.path.realpath(target))
        with _partial(target, _new_file) as temporary:
            writer(temporary)
            _sync(temporary)
            os.replace(temporary, target)
        _sync_folder(target.parent)


def write_folder_atomically(path: Path | str, writer: Callable[[Path], object]) -> None:
    """Let `writer` fill a hidden folder beside `path`, then put it in place.

    No file system replaces a folder in one step: an older folder of that name is set aside as `path + REPLACED`
    first and removed last, so that one of the two is complete at every moment.

    Args:
        path: Folder to write; its parent must exist.
        writer: Called with the temporary folder, which it fills with files.

    Raises:
        OutputError: The disk is full, the parent is missing or not writable.
    """
    target = Path(path)
    aside = target.with_name(target.name + REPLACED)
    with _explained(target):
        with _partial(target, _new_folder) as temporary:
            writer(temporary)
            for file in temporary.iterdir():
                _sync(file)
            _sync_folder(temporary)
            if target.exists():
                remove_folder(aside)
                target.rename(aside)
            temporary.rename(target)
        _sync_folder(target.parent)
        remove_folder(aside)


def make_folder(path: Path | str) -> Path:
    """Create a folder and its parents, where they are not there yet.

    Raises:
        OutputError: It cannot be created.
    """
    with _explained(Path(path)):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it is there; nobody sees it half removed under its own name.

    Raises:
        OutputError: It cannot be removed.
    """
    with _explained(path):
        if path.exists():
            hidden = path.rename(_partial_name(path))
            shutil.rmtree(hidden)


def is_partial(path: Path) -> bool:
    """Whether a file or folder has the name of one that is being written, or whose writer was killed."""
    return _PARTIAL.match(path.name) is not None


def remove_partials(folder: Path) -> None:
    """Remove what killed processes left of unfinished writing in a folder.

    What is being written stays; on file systems without locks nobody else may be writing there.
    """
    for entry in folder.iterdir():
        if is_partial(entry):
            _discard_unused(entry, (True, None))


def _partial_name(path: Path) -> Path:
    return path.with_name(f".{path.stem}-{secrets.token_hex(4)}.partial{path.suffix}")


@contextmanager
def _partial(target: Path, create: Callable[[Path], int]) -> Iterator[Path]:
    """A new file or folder beside the target, locked while it is written, and gone if it was not put in place.

    The lock goes with the process: what nobody holds was left by one that was killed, on this machine or, as far as the
    file system passes locks on, another.
    """
    _remove_partials_of(target)
    temporary, lock = _locked(target, create)
    try:
        yield temporary
    except BaseException:
        _discard(temporary)
        raise
    finally:
        os.close(lock)


def _locked(target: Path, create: Callable[[Path], int]) -> tuple[Path, int]:
    while True:
        temporary = _partial_name(target)
        lock = create(temporary)
        if _try_lock(lock) is not False and temporary.exists():  # not taken for a leftover before it was locked
            return temporary, lock
        os.close(lock)


def _try_lock(descriptor: int) -> bool | None:
    """Whether nobody else held it; None: on this file system it cannot be told."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError as error:
        return False if error.errno == errno.EWOULDBLOCK else None


def _new_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _new_folder(path: Path) -> int:
    path.mkdir()
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _remove_partials_of(target: Path) -> None:
    form = re.compile(rf"\.{re.escape(target.stem)}-[0-9a-f]{{8}}\.partial{re.escape(target.suffix)}")
    with suppress(OSError):
        left = [entry for entry in target.parent.iterdir() if form.fullmatch(entry.name)]
        for entry in left:
            _discard_unused(entry, (True,))


def _discard_unused(path: Path, answers: tuple[bool | None, ...]) -> None:
    """Remove a leftover, if `_try_lock` says one of these."""
    with suppress(OSError):
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if _try_lock(lock) in answers:
                _discard(path)
        finally:
            os.close(lock)


def _discard(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some systems cannot open or sync a folder; the rename holds without it
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, f"{error.strerror or error}; choose another place")
        raise OutputError(f"cannot write {path}: {advice}") from error


# Whether the machine was not up to a computation, so that the same input may do another time.


def is_of_the_machine(error: BaseException) -> bool:
    """Whether memory, the disk or another process is to blame."""
    return isinstance(error, OSError | OutputError) or is_out_of_memory(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was lacking, the machine's or a device's, of which torch tells in the text of a RuntimeError."""
    text = str(error).lower() if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text
