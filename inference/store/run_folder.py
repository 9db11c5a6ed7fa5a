"""The folder of a run: where it is, what may be overwritten, and what stands in it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from causalpima.inference.store.files import (
    FORMAT,
    FORMAT_KEY,
    FormatError,
    OutputError,
    check_format,
    is_partial,
    make_folder,
    remove_folder,
    remove_partials,
    to_json,
    write_atomically,
    write_bytes,
    write_json,
    write_text,
)
from causalpima.inference.store.input_files import check_memory, open_regular, read_json, reason_of
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.summary_schema import check_facts, checked_summary
from causalpima.inference.store.yaml_text import read_yaml, to_yaml

__all__ = [
    "LATER",
    "RESULTS",
    "STAGING",
    "WRITTEN",
    "FolderChanges",
    "RunFolder",
    "changes_of",
    "check_writable",
    "claim_run_folder",
    "complete_changes",
    "discard_changes",
    "next_run_folder",
]


# Names of the files of a run, and of what later commands leave beside them.


# What a run writes, in the order in which `--force` removes it. The configuration is not here: it is replaced in one
# step, so that the folder can be told for a run at every moment.
WRITTEN = (
    "summary.json",
    "posterior.nc",
    "report.html",
    "metrics.jsonl",
    "figures/latent_*.png",
    "figures/nearest_samples_*.png",
    "figures/decoded_means_*.png",
    "figures/curves_*.png",
    "figures/missing.png",
    "figures/outcomes_*.png",
    "figures/traversal_*.png",  # of earlier versions
    "figures/variance_explained.png",
    "figures/designed_*.png",
    "figures/node_factors.png",
    "figures/reliability.png",
    "figures/graph.png",
    "figures/conditionals.png",
    "figures/objective.png",
    "figures/restart_agreement.png",
    "checkpoint/epoch-*",
    "checkpoint/final",
    "checkpoint/unnamed",
    "names/contact_sheet*.png",
    "restarts/[0-9]*",
    "unnamed",
)
# What a result consists of, which a later one of the same run replaces as a whole.
RESULTS = (*WRITTEN[: WRITTEN.index("checkpoint/epoch-*")], "checkpoint/final")
# What later commands leave about a run; `--force` and other names for its clusters make it void.
LATER = (
    "check.json",
    "diagnose.json",
    "evaluate.json",
    "mcmc.json",
    "mcmc.nc",
    "query.json",
    "folds/fold-*.json",
    "figures/check.png",
    "figures/k_hat.png",
    "figures/predictive_*.png",
    "figures/rank_plots.png",
    "figures/mcmc_*.png",
    "figures/query_*.png",
    "figures/edge_probabilities*.png",
)


# Several files of a folder, changed in one step that no kill and no full disk can part.


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
            if _wait_for_completion(descriptor, folder) and (folder / STAGING / _JOURNAL).is_file():
                _whatever_interrupts(folder)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OutputError(
            f"{folder}: expected a folder whose last change is complete, got one that was interrupted ({error.strerror}"
            "); run a command on it as somebody who may write there"
        ) from error


def _wait_for_completion(descriptor: int, folder: Path) -> bool:
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

    @property
    def is_empty(self) -> bool:
        """Whether it is not there, or holds no more than what a killed process left unfinished."""
        return not self._entries()

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
        return [entry for entry in there if entry.name != STAGING and not is_partial(entry)]

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

    @contextmanager
    def created(self, config: Mapping[str, Any], force: bool = False) -> Iterator[FolderChanges]:
        """Make the folder with a whole run in it, in one step; what fails before the end leaves all as it was.

        Args:
            config: As for `create`.
            force: As for `create`.

        Raises:
            OutputError: As `create`.
        """
        self.check(force)
        is_new = not self.path.exists()
        make_folder(self.path)
        try:
            with self.in_use(), self.changes() as changes:
                changes.remove(*WRITTEN, *LATER)
                RunFolder(changes.path)._write_config(config)
                yield changes
        except BaseException:
            if is_new:
                with suppress(OSError):  # it is not empty: what was decided is there
                    self.path.rmdir()
            raise

    def _clear(self) -> None:
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

        What a killed one left unfinished is removed.

        Raises:
            OutputError: Another process is at it.
        """
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            _lock_run(descriptor, self.path)
            self.remove_partials()
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


def _lock_run(descriptor: int, path: Path) -> None:
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


# New run folders with a number, for runs that were not told where to go.


def next_run_folder(dataset: str, home: Path | str = "runs") -> Path:
    """`home/DATASET-001`, `-002`, ...: the first number after all that are there."""
    pattern = re.compile(rf"^{re.escape(dataset)}-(\d+)$")
    names = [path.name for path in Path(home).iterdir()] if Path(home).is_dir() else []
    taken = [int(match[1]) for match in map(pattern.match, names) if match]
    return Path(home) / f"{dataset}-{max(taken, default=0) + 1:03d}"


def claim_run_folder(dataset: str, home: Path | str = "runs") -> RunFolder:
    """Make the next numbered folder; of several processes that ask at once, each gets one of its own.

    Raises:
        OutputError: It can't be made.
    """
    make_folder(home)
    while True:
        path = next_run_folder(dataset, home)
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError:
            make_folder(path)  # raises, and says what to do
        return RunFolder(path)
