"""The folder of a run: where it is, what may be overwritten, and what stands in it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from inference.results.arviz_export import read_posterior
from inference.results.files import OutputError, make_folder, remove_folder, remove_partials, write_json, write_text
from inference.results.folder_changes import (
    STAGING,
    FolderChanges,
    changes_of,
    complete_changes,
    discard_changes,
)
from inference.results.input_files import check_memory, open_regular, read_json, reason_of
from inference.results.run_files import LATER, WRITTEN
from inference.results.strict_json import to_json
from inference.results.summary_schema import check_facts, checked_summary
from inference.results.versions import FORMAT, FORMAT_KEY, FormatError, check_format
from inference.results.yaml_text import read_yaml, to_yaml

__all__ = ["RunFolder", "check_writable"]

_CHECKSUMS, _BLOCK = "checksums", 2**20
_SUBFOLDERS = ("figures", "checkpoint", "names", "restarts", "folds", "unnamed")


class RunFolder:
    """Paths of a run folder, and its small files; a change of it that a kill interrupted is completed.

    Args:
        path: The folder; it need not exist.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        complete_changes(self.path)
        self.config = self.path / "config.yaml"
        self.summary = self.path / "summary.json"
        self.metrics = self.path / "metrics.jsonl"
        self.posterior = self.path / "posterior.nc"
        self.checkpoints = self.path / "checkpoint"
        self.final = self.checkpoints / "final"
        self.unnamed = self.path / "unnamed"
        self.names = self.path / "names"
        self.figures = self.path / "figures"
        self.report = self.path / "report.html"
        self.restarts = self.path / "restarts"

    @property
    def files(self) -> tuple[Path, ...]:
        """The single files that a run writes."""
        return self.config, self.summary, self.metrics, self.posterior, self.report

    @property
    def is_complete(self) -> bool:
        """Whether a run ended here, well or badly: its summary is the last file that is written."""
        return self.summary.is_file()

    def check(self, force: bool = False) -> None:
        """Refuse a folder that `create` could not make, before anything is computed.

        Raises:
            OutputError: There is something in it and `force` is off, or it holds no run, or it can't be written to.
        """
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"output_dir: expected a folder, got the file {self.path}; name another")
        check_writable(self.path)
        if self._entries() and not force:
            raise OutputError(
                f"output_dir: expected a new or empty folder, got {self.path} with files in it; name another, go on "
                "with its run by --resume, or replace its run by --force"
            )
        if self._entries() and not self._holds_run():
            raise OutputError(
                f"output_dir: --force replaces an earlier run, and {self.path} holds files but no run; "
                "name another folder"
            )

    def _entries(self) -> list[Path]:
        there = self.path.iterdir() if self.path.is_dir() else ()
        return [entry for entry in there if entry.name != STAGING]

    def _holds_run(self) -> bool:
        try:
            return "nodes" in self.read_config()
        except ValueError:
            return False

    def create(self, config: Mapping[str, Any], force: bool = False) -> list[str]:
        """Make the folder, empty of an earlier run, with its `config.yaml`.

        Args:
            config: The configuration, as plain values.
            force: Replace an earlier run. Only files that a run writes are removed.

        Returns:
            Names of what else was there and was kept.

        Raises:
            OutputError: As `check`; or another process is writing here, or the disk is full. An empty folder is not
                left behind.
        """
        self.check(force)
        make_folder(self.path)
        with self.in_use():
            try:
                self._clear()
                self._write_config(config)
            except BaseException:
                with suppress(OSError):  # it is not empty
                    self.path.rmdir()
                raise
        return sorted(str(path.relative_to(self.path)) for path in self._foreign())

    def _clear(self) -> None:
        self.remove_partials()
        for entry in (entry for pattern in (*WRITTEN, *LATER) for entry in sorted(self.path.glob(pattern))):
            if entry.is_dir() and not entry.is_symlink():
                remove_folder(entry)
            else:
                entry.unlink()
        for name in _SUBFOLDERS:
            if (self.path / name).is_dir() and not any((self.path / name).iterdir()):
                (self.path / name).rmdir()

    def _foreign(self) -> Iterator[Path]:
        """What is left after `_clear`, but for the configuration."""
        for entry in self._entries():
            if entry.name in _SUBFOLDERS and entry.is_dir():
                yield from entry.iterdir()
            elif entry != self.config:
                yield entry

    def remove_outdated(self) -> None:
        """Remove figures of earlier results, and what later commands found out about these.

        Nodes that were renamed since would leave their figures behind.
        """
        outdated = (*(pattern for pattern in WRITTEN if pattern.startswith("figures/")), *LATER)
        for entry in (entry for pattern in outdated for entry in self.path.glob(pattern)):
            entry.unlink()

    def remove_partials(self) -> None:
        """Remove what a killed process left of unfinished writing; nobody else may be writing."""
        discard_changes(self.path)
        for folder in (self.path, *(self.path / name for name in _SUBFOLDERS)):
            if folder.is_dir():
                remove_partials(folder)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep other processes from writing here meanwhile; the system lets go when this one dies.

        Raises:
            OutputError: Another process is at it.
        """
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            _lock(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def changes(self) -> Iterator[FolderChanges]:
        """Change several files in one step (`changes_of`); this process has the folder in use."""
        with changes_of(self.path) as changes:
            yield changes

    @property
    def found_weights(self) -> Path:
        """The final checkpoint as it was before any names; earlier versions kept it below `checkpoint`."""
        places = (self.unnamed / "checkpoint" / "final", self.checkpoints / "unnamed")
        return next((place for place in places if place.is_dir()), self.final)

    def _write_config(self, config: Mapping[str, Any]) -> None:
        plain = {FORMAT_KEY: FORMAT, **json.loads(to_json(config))}
        write_text(self.config, to_yaml(plain))

    def read_config(self) -> dict[str, Any]:
        """Read `config.yaml`: the settings, without the version of the format.

        Raises:
            ValueError: The folder holds no readable configuration, or one of a newer program.
        """
        try:
            content = read_yaml(self.config, self.path)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{self.path}: expected a run folder with a readable config.yaml, got none ({reason_of(error)}); "
                "name the folder of a run"
            ) from error
        if not isinstance(content, dict):
            raise ValueError(
                f"{self.config}: expected settings by name, got {type(content).__name__}; name another run"
            )
        check_format(self.config, content.pop(FORMAT_KEY, None))
        return content

    def read_summary(self) -> dict[str, Any]:
        """Read `summary.json`; a missing entry raises `MissingEntryError` where somebody asks for it.

        Raises:
            ValueError: It can't be read, or an entry is of another kind than it has to be.
        """
        try:
            content = checked_summary(read_json(self.summary, self.path), str(self.summary))
            content.pop(_CHECKSUMS, None)
            return content
        except FormatError:
            raise
        except FileNotFoundError as error:
            raise ValueError(
                f"{self.path}: expected a finished run, got one that is unfinished; go on with "
                f"python -m inference.svi --resume {shlex.quote(str(self.path))}"
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.summary}: expected the summary of a run, got something else ({reason_of(error)}); remove it, "
                "and --resume writes it again"
            ) from error

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write `summary.json`: the run is complete."""
        known = {self.posterior.name: _checksum(self.posterior, self.path)} if self.posterior.is_file() else {}
        write_json(self.summary, {**summary, **({_CHECKSUMS: known} if known else {})})

    def read_posterior(self, groups: Sequence[str] | None = None, is_finished: bool = True) -> xr.DataTree:
        """Read `posterior.nc` into memory.

        Args:
            groups: The groups that are wanted, `variational` among them; None: all.
            is_finished: Whether `summary.json` is of it already.

        Raises:
            ValueError: It is not there, damaged, not as the run wrote it, or lacks what every run has.
        """
        if not self.posterior.exists():
            raise ValueError(f"{self.path}: expected a run with its posterior.nc, got none; fit again")
        if is_finished:
            self._check_unchanged()
        tree = read_posterior(self.posterior, self.path, groups)
        try:
            _check_posterior(tree)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{self.posterior}: expected the posterior of a run, got something else ({reason_of(error)}); fit again"
            ) from error
        return tree

    def _check_unchanged(self) -> None:
        """Refuse a `posterior.nc` that is not the one which the summary is of; older summaries do not say."""
        try:
            content = read_json(self.summary, self.path)
            known = (content.get(_CHECKSUMS) or {}).get(self.posterior.name)
            found = known and _checksum(self.posterior, self.path)
        except (OSError, ValueError, AttributeError):
            return  # said where they are read
        if found != known:
            raise ValueError(
                f"{self.posterior}: expected the file that the run wrote, got one with other content; put that one "
                "back, or fit again"
            )

    def write_metrics(self, history: Iterable[Mapping[str, Any]]) -> None:
        """Write `metrics.jsonl`, one line per epoch."""
        write_text(self.metrics, "".join(to_json(record, indent=None) + "\n" for record in history))


def check_writable(path: Path, flag: str = "output_dir") -> None:
    """Refuse a folder which, or of which the nearest one above that is there, may not be written to.

    Raises:
        OutputError: It is that, or a file stands on the way.
    """
    there = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise OutputError(f"{flag}: expected a path of folders, got {path}, where {there} is a file; name another")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"{flag}: expected a folder that you may write to, got {path}; choose another")


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:  # any other error: a file system without locks
            raise OutputError(f"{path} is in use by another process; wait until it ends, or stop it") from error


def _checksum(path: Path, within: Path) -> str:
    """SHA-256 of a file."""
    with open_regular(path, within) as file:
        check_memory(os.fstat(file.fileno()).st_size)  # it is read whole, and a sparse file may be of any size
        digest = hashlib.sha256()
        while block := file.read(_BLOCK):
            digest.update(block)
        return digest.hexdigest()


def _check_posterior(tree: xr.DataTree) -> None:
    """What every reader counts on: the facts, and q(N|X), p(N) and the splits of shapes that go together.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: It is not there, or of another kind.
    """
    check_facts(json.loads(tree.attrs["facts"]))
    variational = tree["variational"].dataset
    responsibilities, log_joint = variational["responsibilities"], variational["log_joint"]
    arrays = [variational[name] for name in ("latent_loc", "latent_scale") if name in variational]
    constant = tree["constant_data"].dataset if "constant_data" in tree else None
    if constant is not None:
        arrays.append(constant["split"])
    if any(values.dtype.kind not in "fiu" for values in (responsibilities, log_joint, *arrays)):
        raise ValueError("what should be numbers is text")
    if responsibilities.ndim != 2 or responsibilities.shape[1] != log_joint.size:
        raise ValueError("its responsibilities have no column per cell of its p(N)")
    if any(values.ndim < 1 or len(values) != len(responsibilities) for values in arrays):
        raise ValueError("its arrays are of different numbers of samples")
    if not np.isfinite(responsibilities.to_numpy()).all():
        raise ValueError("its responsibilities are no numbers")
    if constant is not None:
        split = constant["split"].to_numpy()
        if split.size and not len(constant["split_level"]) > int(split.max()) >= int(split.min()) >= 0:
            raise ValueError("its split has codes without a name")
    if {variational["node_from"].size, variational["node_to"].size} != {log_joint.ndim}:
        raise ValueError("its nodes are not those of its p(N)")
