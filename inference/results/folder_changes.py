"""Several files of a folder, changed in one step that no kill and no full disk can part."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from inference.results.files import OutputError, make_folder, write_atomically, write_bytes
from inference.results.input_files import read_json

__all__ = ["STAGING", "FolderChanges", "changes_of", "complete_changes", "discard_changes"]

STAGING = ".changes"
"""Folder within the folder that changes: what was not decided yet, or is being put in place."""

_JOURNAL = "journal.json"
_PATIENCE = 10.0


class FolderChanges:
    """What is to change in a folder; nothing does before the end of `changes_of`.

    Attributes:
        folder: The folder.
        path: A folder within; a file that is written here is to take the place of the file of the same relative path.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / STAGING
        self._removed: list[str] = []

    def remove(self, *patterns: str) -> None:
        """Remove files, and what is in folders, that match; new ones of the same names stay."""
        self._removed += patterns

    def keep(self, home: str) -> None:
        """Keep, in a new folder of this name, all files as they are now that this change replaces or removes."""
        for name in sorted({*self._removed_files(), *(name for name in self._new() if (self.folder / name).is_file())}):
            self.put(self.folder / name, f"{home}/{name}")

    def put(self, source: Path, name: str) -> None:
        """Let a file that is there have another name, too: as a link where the file system has links."""
        target = self.path / name
        make_folder(target.parent)
        try:
            os.link(source, target, follow_symlinks=True)
        except OSError:
            write_atomically(target, lambda temporary: shutil.copyfile(source, temporary))

    def decide(self) -> None:
        """From here on the change is completed, by whomever."""
        removed = sorted(set(self._removed_files()) - set(self._new()))
        write_bytes(self.path / _JOURNAL, json.dumps({"remove": removed}).encode())

    def _new(self) -> list[str]:
        return _files(self.path)

    def _removed_files(self) -> Iterator[str]:
        for pattern in self._removed:
            for entry in self.folder.glob(pattern):
                name = entry.relative_to(self.folder).as_posix()
                if entry.is_dir() and not entry.is_symlink():
                    yield from (f"{name}/{inner}" for inner in _files(entry))
                    yield name
                else:
                    yield name


@contextmanager
def changes_of(folder: Path) -> Iterator[FolderChanges]:
    """Change several files of a folder in one step.

    New files are written within the folder first. Then a journal decides: before it the folder is as it was, after it
    the change is completed, by this process or, if it was killed, by whoever opens the folder next.

    Args:
        folder: The folder; nobody else may be writing there.

    Raises:
        OutputError: The disk is full, or the folder is not writable; nothing has changed.
    """
    complete_changes(folder, is_locked=True)
    changes = FolderChanges(folder)
    discard_changes(folder)
    make_folder(changes.path)
    try:
        yield changes
        changes.decide()
    except OutputError as error:
        discard_changes(folder)
        raise OutputError(str(error).replace(str(changes.path), str(folder))) from error
    except BaseException:
        if not (changes.path / _JOURNAL).exists():
            discard_changes(folder)
        raise
    _whatever_interrupts(folder, is_own=True)


def discard_changes(folder: Path) -> None:
    """Remove what a killed process had not decided yet; nobody else may be writing."""
    if (folder / STAGING).is_dir() and not (folder / STAGING / _JOURNAL).exists():
        shutil.rmtree(folder / STAGING, ignore_errors=True)


def complete_changes(folder: Path, is_locked: bool = False) -> None:
    """Put in place what was decided and not completed; nothing is there to do but after a kill.

    Args:
        folder: The folder; it need not exist.
        is_locked: Whether this process has it to itself; if not, it waits for who is at it.

    Raises:
        OutputError: It cannot be written to.
    """
    if not (folder / STAGING / _JOURNAL).is_file():
        return
    try:
        if is_locked:
            _whatever_interrupts(folder)
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if _lock(descriptor, folder) and (folder / STAGING / _JOURNAL).is_file():
                _whatever_interrupts(folder)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OutputError(
            f"{folder}: expected a folder whose last change is complete, got one that was interrupted ({error.strerror}"
            "); run a command on it as somebody who may write there"
        ) from error


def _lock(descriptor: int, folder: Path) -> bool:
    """Wait for who is completing; True: nobody is any more."""
    end = time.monotonic() + _PATIENCE
    while (folder / STAGING / _JOURNAL).is_file():
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK or time.monotonic() > end:
                return error.errno != errno.EWOULDBLOCK  # a file system without locks
            time.sleep(0.01)
    return False


def _whatever_interrupts(folder: Path, is_own: bool = False) -> None:
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            _complete(folder, is_own)
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _complete(folder: Path, is_own: bool) -> None:
    """May be stopped anywhere, and begun again.

    Args:
        folder: The folder.
        is_own: Whether this process has decided the change; if not, the folder may be a stranger's, and no link and no
            name leads out of it.
    """
    staging = folder / STAGING
    if not (staging / _JOURNAL).is_file():
        return
    removed, new = _to_remove(staging / _JOURNAL), _files(staging)
    if not is_own:
        _check_inside(folder, [*removed, *new])
    for name in sorted(new, key=lambda name: name == "summary.json"):
        target = Path(os.path.realpath(folder / name))
        target.parent.mkdir(parents=True, exist_ok=True)
        _move(staging / name, target)
    _remove(folder, removed)
    _sync(folder, removed)
    (staging / _JOURNAL).unlink()
    shutil.rmtree(staging, ignore_errors=True)


def _to_remove(journal: Path) -> list[str]:
    try:
        found = read_json(journal)["remove"]
        if isinstance(found, list) and all(isinstance(name, str) and name for name in found):
            return found
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise OutputError(f"{journal}: expected names of files to remove, got something else; remove {journal.parent}")


def _check_inside(folder: Path, names: Iterable[str]) -> None:
    home = os.path.realpath(folder)
    for name in names:
        there = Path(os.path.realpath(folder / name))
        if ".." in Path(name).parts or not there.is_relative_to(home) or str(there) == home:
            raise OutputError(
                f"{folder}: expected an interrupted change of files within, got one of {name}, which leads out of it; "
                f"remove {folder / STAGING}"
            )


def _move(source: Path, target: Path) -> None:
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        write_atomically(target, lambda temporary: shutil.copyfile(source, temporary))
        source.unlink()


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        path = folder / name
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
    for name in sorted(names, key=len, reverse=True):
        with suppress(OSError):  # it is not empty, or a file that is gone
            (folder / name).rmdir()
        for parent in Path(name).parents:
            if parent != Path():
                with suppress(OSError):
                    (folder / parent).rmdir()


def _sync(folder: Path, names: Iterable[str]) -> None:
    for parent in {folder, *((folder / name).parent for name in names)}:
        with suppress(OSError):
            descriptor = os.open(parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _files(folder: Path) -> list[str]:
    """Paths of all files below a folder, relative to it."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return [path.relative_to(folder).as_posix() for path in found if path != folder / _JOURNAL]
