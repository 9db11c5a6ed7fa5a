"""Files that are read: regular ones only, of a size that can be held, and inside a folder where that is asked for."""

from __future__ import annotations

import errno
import json
import os
import resource
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from causalpima.inference.store.files import FORMAT_KEY, check_format

__all__ = [
    "MOST_TEXT",
    "UnusableFileError",
    "check_folder",
    "check_memory",
    "check_regular",
    "open_regular",
    "read_bytes",
    "read_json",
    "read_text",
    "reason_of",
]


MOST_TEXT = 2**26
"""Bytes of a text file at most: 64 MiB."""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnusableFileError(OSError):
    """A file that is not opened, for what it is; `strerror` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EINVAL, reason)

    def __str__(self) -> str:
        return str(self.strerror)


def check_regular(path: Path | str, within: Path | str | None = None, most: int | None = None) -> None:
    """Refuse what is no regular file, before somebody opens it: opening a pipe waits for a writer.

    Args:
        path: The file; links are followed.
        within: A folder in which the file has to lie when links are followed; None: anywhere.
        most: Bytes that it may have at most; None: any number.

    Raises:
        OSError: It is not there (`FileNotFoundError`), is a folder (`IsADirectoryError`), or cannot be looked at.
        UnusableFileError: It is a pipe, socket or device, lies outside, or is too large.
    """
    _check_kind(os.stat(path), most)
    if within is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(within)):
        raise UnusableFileError("it is a link to a file outside of the folder; put a copy of the file in its place")


def check_folder(path: Path | str) -> None:
    """Refuse a folder in which something is no regular file, also in folders that it links to.

    Raises:
        OSError: It is not there, is no folder, or cannot be looked at.
        UnusableFileError: Something in it is a pipe, socket or device, or a link to nothing; the message names it.
    """
    folders, seen = [os.fspath(path)], set()
    while folders:
        folder = os.path.realpath(folders.pop())
        if folder in seen:
            continue
        seen.add(folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif not entry.is_file():  # known without a look at each of a million chunks
                    _check_entry(entry.path, os.path.relpath(entry.path, os.path.realpath(path)))


def _check_entry(path: str, name: str) -> None:
    try:
        check_regular(path)
    except OSError as error:
        raise UnusableFileError(f"{name} in it: {reason_of(error)}") from error


def _check_kind(found: os.stat_result, most: int | None) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if kind != stat.S_IFREG:
        raise UnusableFileError(f"it is {_KINDS.get(kind, 'something else')}, no regular file")
    if most is not None and found.st_size > most:
        raise UnusableFileError(f"it has {found.st_size} bytes, more than the {most} that such a file may have")


def open_regular(path: Path | str, within: Path | str | None = None, most: int | None = None) -> BinaryIO:
    """Open a file for reading; arguments and errors are those of `check_regular`."""
    check_regular(path, within, most)
    # Without O_NONBLOCK a pipe that took the place of the file meanwhile would be waited for.
    file = open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)), "rb")  # noqa: SIM115
    try:
        _check_kind(os.fstat(file.fileno()), most)
    except BaseException:
        file.close()
        raise
    return file


def read_bytes(path: Path | str, within: Path | str | None = None, most: int | None = None) -> bytes:
    """Content of a file; arguments and errors are those of `check_regular`."""
    with open_regular(path, within, most) as file:
        return file.read()


def read_text(path: Path | str, within: Path | str | None = None, encoding: str = "utf-8") -> str:
    """Content of a text file of at most `MOST_TEXT` bytes, with line feeds at the ends of its lines.

    Raises:
        OSError: As `check_regular`.
        UnicodeDecodeError: It is in another encoding, or no text.
    """
    content = read_bytes(path, within, MOST_TEXT)
    place = content.find(b"\0")
    if place >= 0:  # which UTF-8 lets pass, and names in results cannot hold
        raise UnicodeDecodeError(encoding, content, place, place + 1, "no text has the character NUL")
    text = content.decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: Path | str, within: Path | str | None = None) -> Any:
    """Value in a JSON file; of a mapping, without the version of its format, which is checked.

    Raises:
        OSError: As `check_regular`.
        ValueError: It is no JSON, or is nested too deeply.
        FormatError: A newer version of the program wrote it.
    """
    try:
        content = json.loads(read_text(path, within))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if isinstance(content, Mapping):
        content = dict(content)
        check_format(path, content.pop(FORMAT_KEY, None))
    return content


def check_memory(n_bytes: int) -> None:
    """Refuse values that the memory of this process cannot hold, before they are read.

    Raises:
        UnusableFileError: They take more than is left.
    """
    left = _memory_left()
    if left is not None and n_bytes > left:
        raise UnusableFileError(
            f"its values take {_gibibytes(n_bytes)}, more than the {_gibibytes(left)} of memory that are left"
        )


def _gibibytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.3g} GiB"


def _memory_left() -> int | None:
    """Bytes that the machine, the control group and the limits of the process leave; None where none is known."""
    known = []
    with suppress(OSError, ValueError, LookupError):
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        known.append(int(lines["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        known.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    with suppress(OSError, ValueError, IndexError):
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        known += [limit - used] if limit != resource.RLIM_INFINITY else []
    return min(known, default=None)


def reason_of(error: Exception) -> str:
    """Why a file cannot be read, in a few words on one line, for the brackets of a message."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no text in UTF-8"
    return " ".join(str(getattr(error, "strerror", None) or error or type(error).__name__).split())
