"""HDF5 files, on which netCDF 4 stands: written on a disk that may be full, and read though a stranger made them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from causalpima.inference.store.input_files import UnusableFileError, check_regular

__all__ = [
    "FailureTakingFile",
    "check_hdf5",
    "survives_full_disk",
]


class FailureTakingFile(io.RawIOBase):
    """A new file for HDF5, which takes the process down with it where a write fails: failures are kept, not raised.

    After a failed write the content is worthless, and `failure` says why. What HDF5 still writes is held in memory,
    so that it reads what it wrote, and can be closed; `check` soon after a write keeps that small.

    Args:
        path: The file, which is created.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.failure: OSError | None = None
        self._file = path.open("w+b", buffering=0)
        self._held: list[tuple[int, bytes]] = []

    def write(self, content: Any) -> int:
        """Write all of it, or keep why not."""
        view, start = memoryview(content).cast("B"), self._file.tell()
        try:
            self._write_out(view)
        except OSError as error:
            self.failure = self.failure or error
            self._held.append((start, bytes(view)))
            self._file.seek(start + len(view))
        return len(view)

    def _write_out(self, view: memoryview) -> None:
        if self.failure is not None:
            raise self.failure
        while view:
            view = view[self._file.write(view) or 0 :]

    def readinto(self, buffer: Any) -> int:
        """Read; zeros where nothing was written."""
        view, start = memoryview(buffer).cast("B"), self._file.tell()
        done = self._file.readinto(view)
        view[done:] = bytes(len(view) - done)
        for offset, content in self._held:
            low, high = max(start, offset), min(start + len(view), offset + len(content))
            if low < high:
                view[low - start : high - start] = content[low - offset : high - offset]
        self._file.seek(start + len(view))
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Change the size, or keep why not."""
        try:
            return self._file.truncate(size)
        except OSError as error:
            self.failure = self.failure or error
            return self._file.tell() if size is None else size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Where it is."""
        return self._file.tell()

    def close(self) -> None:
        """Close it."""
        self._file.close()
        super().close()

    def check(self) -> None:
        """Raise what went wrong.

        Raises:
            OSError: The first failure.
        """
        if self.failure is not None:
            raise self.failure


@contextmanager
def survives_full_disk(path: Path) -> Iterator[FailureTakingFile]:
    """A file to hand to HDF5, which is to close it before; at the end what went wrong is raised.

    Args:
        path: New file.

    Raises:
        OSError: A write failed.
    """
    with FailureTakingFile(path) as file:
        yield file
        file.check()


def check_hdf5(path: Path | str, within: Path | str | None = None) -> dict[str, int]:
    """Refuse a file that is no HDF5 file, is damaged, or takes values from other files of the machine.

    Args:
        path: The file.
        within: A folder in which it has to lie, or None.

    Returns:
        Bytes that the values of each group at the top take in memory; those of the root are under an empty name.

    Raises:
        OSError: It is another file, cannot be read, or is refused (`UnusableFileError`).
    """
    check_regular(path, within)
    if not h5py.is_hdf5(path):
        raise UnusableFileError("it is no netCDF 4 file")
    sizes: dict[str, int] = {}
    try:
        with h5py.File(path) as file:
            for name in _names(file):
                if isinstance(file.get(name, getlink=True), h5py.ExternalLink):
                    raise UnusableFileError(f"its part {name} is a link to another file; write a copy with its values")
                item = file.get(name)
                if isinstance(item, h5py.Dataset):
                    if item.is_virtual or item.external:
                        raise UnusableFileError(f"the values of its part {name} lie in another file; write a copy")
                    group = name.rpartition("/")[0].partition("/")[0]
                    sizes[group] = sizes.get(group, 0) + (item.size or 0) * item.dtype.itemsize
    except UnusableFileError:
        raise
    except Exception as error:  # whatever a damaged file makes its reader raise
        raise UnusableFileError(f"it is damaged: {' '.join(str(error).split())}") from error
    return sizes


def _names(file: h5py.File) -> list[str]:
    """All links of a file but those of links that lead back, without following any out of it."""
    found: list[str] = []
    file.visit_links(found.append)
    return found
