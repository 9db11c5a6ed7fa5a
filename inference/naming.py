"""Names in the folder of a run: the contact sheet and the table that go out, the results that come back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.analyses.sheet import make_sheet
from causalpima.inference.clusters.names import read_names, write_template
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.reporting.contact_sheet import write_contact_sheet
from causalpima.inference.restarts import compared_again
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.store.files import make_folder, write_bytes
from causalpima.inference.store.input_files import MOST_TEXT, read_bytes, read_text, reason_of
from causalpima.inference.store.run_folder import LATER, RESULTS, FolderChanges, RunFolder
from causalpima.inference.store.text import cell_names
from causalpima.inference.training.build import Supplied
from causalpima.inference.training.checkpoint import load_checkpoint, save_checkpoint
from causalpima.inference.training.components import Components
from causalpima.inference.training.fitted_run import check_finished, described
from causalpima.inference.training.prepared_run import check_samples

__all__ = [
    "TABLE",
    "FoundRun",
    "Shown",
    "has_names",
    "remove_names",
    "restore_unnamed",
    "stage_named",
]


TABLE = "names.csv"
_SHEET = "contact_sheet.png"


@dataclass(frozen=True)
class Shown:
    """What was written for a person to look at.

    Attributes:
        files: The pages of the contact sheet.
        table: The table of names.
        is_new: Whether the table was written; False: one that has names was there, and was kept.
        sizes: Samples of every cluster.
    """

    files: tuple[Path, ...]
    table: Path
    is_new: bool
    sizes: tuple[int, ...]

    def to_plain(self) -> dict[str, Any]:
        """For machines."""
        clusters = [{"cluster": cluster, "size": size} for cluster, size in enumerate(self.sizes)]
        files = [str(path) for path in self.files]
        return {"contact_sheet": files, "names": str(self.table), "is_new": self.is_new, "clusters": clusters}


class FoundRun:
    """A finished run as it was found: its clusters bear the numbers that they had before any names.

    Args:
        folder: The folder of the run.
        data: The samples that it was fitted to.
        device: Where to compute.
        decoders: The laws or decoders that the run was given as objects, once more.
        components: Other components that it was given as objects.

    Raises:
        ValueError: It is not finished, or the samples are others.
    """

    def __init__(
        self,
        folder: RunFolder,
        data: MultimodalData,
        device: str = "cpu",
        decoders: Supplied | None = None,
        components: Components | None = None,
    ) -> None:
        check_finished(folder)
        self.folder = folder
        self.checkpoint = load_checkpoint(folder.found_weights)
        description = described(self.checkpoint.state)
        check_samples(self.checkpoint, data, str(folder.path))
        self.run = Run(data, description.config, device, decoders, components)
        self.run.take_over(self.checkpoint.weights, _history(folder))
        self._clusters: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def clusters(self) -> tuple[np.ndarray, np.ndarray]:
        """q(N|X) `[n, C]` and the mean of q(Z|X) `[n, J]`."""
        if self._clusters is None:
            self._clusters = self.run.clusters()
        return self._clusters

    @property
    def sizes(self) -> tuple[int, ...]:
        """Samples of every cluster."""
        r = self.clusters[0]
        return tuple(np.bincount(r.argmax(axis=1), minlength=r.shape[1]).tolist())

    def show(self) -> Shown:
        """Write the contact sheet, and a table to fill in unless one with names is there.

        Raises:
            OutputError: The folder cannot be written to.
        """
        make_folder(self.folder.names)
        called, filled = self._called()
        sheet = make_sheet(self.run.data, self.run.tensors.standardisation, self.clusters, called)
        pages = write_contact_sheet(sheet, self.folder.names / _SHEET)
        table, nodes = self.folder.names / TABLE, tuple(self.run.config.nodes)
        is_new = not has_names(table)
        if is_new:
            write_template(table, nodes, self.sizes, filled)
        return Shown(tuple(pages), table, is_new, self.sizes)

    def _called(self) -> tuple[list[str], list[list[str]] | None]:
        """What clusters are called by the labels of the run, and their outcomes for the table."""
        if self.run.labels is None:
            return [], None
        names = self.run.outcome_names
        observed = [node in self.run.labels.levels for node in self.run.config.nodes]
        cells = np.stack(np.unravel_index(np.arange(len(self.sizes)), self.run.config.outcomes), axis=1)
        filled = [
            [names[node][code] if observed[node] else "" for node, code in enumerate(row)] for row in cells.tolist()
        ]
        return [name.strip("()").replace(", ", ",") for name in cell_names(names, 18)], filled

    def named(self, table: Path) -> FitResult:
        """The run with the names of a table.

        Raises:
            ValueError: The table cannot be used.
        """
        names = read_names(table, self.run.config.nodes, self.sizes)
        return self._with_known(self.run.named(names, self.checkpoint.state.get("labelling")))

    def unnamed(self) -> FitResult:
        """The run as it was found."""
        return self._with_known(self.run.as_found(self.checkpoint.state.get("labelling")))

    def _with_known(self, result: FitResult) -> FitResult:
        """With what the summary said of the fit itself, which naming does not change."""
        if not self.folder.is_complete:
            return result
        before = self.folder.read_summary()
        kept: dict[str, Any] = {name: before[name] for name in ("seconds",) if name in before}
        return compared_again(dataclasses.replace(result, summary={**result.summary, **kept}), self.folder)

    def keep_unnamed(self, changes: FolderChanges) -> None:
        """Keep the run as it is before any names, so that `--remove` puts its files back, and other names can come."""
        home = self.folder
        if home.unnamed.is_dir():
            _put(changes, home.unnamed, (path for path in home.unnamed.rglob("*") if path.is_file()))
        elif home.found_weights == home.final:
            found = [path for pattern in (*RESULTS, *LATER) for path in home.path.glob(pattern)]
            inner = [file for path in found if path.is_dir() for file in path.rglob("*")]
            _put(changes, home.path, (path for path in [*found, *inner] if path.is_file()))
        else:  # named by an earlier version, which kept no more
            place = changes.path / "checkpoint" / "unnamed"
            facts = self.checkpoint.weights, self.checkpoint.state, self.run.fingerprint
            save_checkpoint(place, self.checkpoint.epoch, *facts, keep=1)


def _put(changes: FolderChanges, home: Path, files: Iterable[Path]) -> None:
    for file in files:
        changes.put(file, f"unnamed/{file.relative_to(home)}")


def _history(folder: RunFolder) -> list[Mapping[str, Any]]:
    try:
        records = [json.loads(line) for line in read_text(folder.metrics, folder.path).splitlines()]
        return [dict(record) for record in records]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{folder.metrics}: expected one record per epoch, got none that can be read; fit again"
        ) from error


def has_names(table: Path) -> bool:
    """Whether somebody has written into a table: whatever is there and is no empty template is kept."""
    if not table.exists():
        return False
    try:
        lines = read_bytes(table, most=MOST_TEXT).decode("utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise ValueError(
            f"{table}: expected a table of names, got none that can be read ({reason_of(error)}); remove it"
        ) from error
    return any(cell.strip() for line in lines[1:] for cell in line.replace(";", ",").split(",")[2:])


def stage_named(found: FoundRun, result: FitResult, changes: FolderChanges, table: Path) -> None:
    """Let a change of the folder of a run, or of that of a copy, give it names.

    Args:
        found: The run.
        result: The same, named.
        changes: Of the folder where it goes.
        table: The table of names, kept beside the results.

    Raises:
        OutputError: The disk is full, or the folder cannot be written to.
    """
    folder = RunFolder(changes.folder)
    content, there = read_bytes(table), folder.names / TABLE
    if not folder.unnamed.is_dir():
        found.keep_unnamed(changes)
    if not there.is_file() or there.read_bytes() != content:
        if there.is_file():
            is_kept = (changes.path / "unnamed" / "summary.json").is_file()
            changes.put(there, f"unnamed/names/{TABLE}" if is_kept else _free_place(folder))
        write_bytes(make_folder(changes.path / "names") / TABLE, content)
    result.stage(changes)


def _free_place(folder: RunFolder) -> str:
    """Where a table that another one replaces is kept: somebody may have filled it in."""
    numbers = (number for number in range(1, 10**6) if not (folder.names / f"names_{number}.csv").exists())
    return f"names/names_{next(numbers)}.csv"


def restore_unnamed(folder: RunFolder) -> dict[str, Any]:
    """Put all files of a run back that were there before its names, bit for bit, and remove what came with the names.

    A table of names in `names` stays beside, if it was filled in.

    Returns:
        The summary.

    Raises:
        OutputError: The disk is full, or the folder cannot be written to.
    """
    there, before = folder.names / TABLE, folder.unnamed / "names" / TABLE
    with folder.changes() as changes:
        if before.is_file() and has_names(there) and there.read_bytes() != before.read_bytes():
            changes.put(there, _free_place(folder))
        for file in folder.unnamed.rglob("*"):
            if file.is_file():
                changes.put(file, file.relative_to(folder.unnamed).as_posix())
        changes.remove(*RESULTS, *LATER, "unnamed")
    return folder.read_summary()


def remove_names(found: FoundRun, folder: RunFolder) -> FitResult:
    """Write the run as it was found, of one that an earlier version named, which kept no more than weights.

    Raises:
        ValueError: It has no names.
        OutputError: The disk is full, or the folder cannot be written to.
    """
    if folder.found_weights == folder.final:
        raise ValueError(f"{folder.path}: expected a run with names, got one without; there is nothing to remove")
    result = found.unnamed()
    result.write(folder)
    return result
