"""One start of several, in a folder of its own: trained, gone on with, and what it found kept for the comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from inference.data.multimodal import MultimodalData
from inference.results.files import make_folder
from inference.results.fit_result import FitResult
from inference.results.restart_arrays import FoundStart, StartArrays, write_start
from inference.results.run_folder import RunFolder
from inference.training.build import Supplied
from inference.training.checkpoint import CheckpointError, load_checkpoint
from inference.training.components import Components
from inference.training.config import FitConfig
from inference.training.run import Run
from inference.training.run_samples import check_samples

__all__ = ["Starts", "found_start", "keep", "read", "run_start"]


@dataclass(frozen=True)
class Starts:
    """What the starts of a run have in common; it can be sent to another process.

    Attributes:
        data: The samples.
        config: The configuration; its `restart` is replaced.
        home: The folder of the run, with those of its starts in `restarts/`.
        device: Where to compute.
        decoders: Physics laws or decoders in place of the configured ones, by modality.
        components: Objects in place of other configured components.
    """

    data: MultimodalData
    config: FitConfig
    home: Path
    device: str = "cpu"
    decoders: Supplied = field(default_factory=dict)
    components: Components = field(default_factory=Components)

    def folder(self, number: int) -> RunFolder:
        """The folder of a start: checkpoints, `metrics.jsonl`, `start.npz`, and last `summary.json`."""
        return RunFolder(RunFolder(self.home).restarts / str(number))

    def prepare(self, number: int) -> Run:
        """A start that has not begun."""
        config = replace(self.config, restart=number)
        return Run(self.data, config, self.device, self.decoders, self.components)

    def go_on(self, number: int) -> tuple[Run, str | None]:
        """A start where its folder left it, and a warning where that was not its newest checkpoint.

        Raises:
            CheckpointError: Its checkpoints are damaged, or of another configuration or other data.
        """
        run, folder = self.prepare(number), self.folder(number)
        if not folder.metrics.exists() and not any(folder.checkpoints.glob("epoch-*")):
            return run, None
        return run, run.restore(folder).warning


def run_start(
    starts: Starts,
    number: int,
    until: int | None = None,
    stepped: Callable[[], None] | None = None,
    warned: Callable[[str], object] = lambda _: None,
) -> None:
    """Train a start from where it is, with a checkpoint after every epoch, and keep what it found if it ends.

    Args:
        starts: Data, configuration and folder.
        number: Which start.
        until: Number of finished epochs at which to stop; None: all that are planned.
        stepped: Called after every gradient step.
        warned: Called with what the user should know.

    Raises:
        OutputError: The disk is full, or another process is at this start.
        CheckpointError: See `Starts.go_on`.
    """
    folder = starts.folder(number)
    make_folder(folder.path)
    with folder.in_use():
        folder.remove_partials()
        run, warning = starts.go_on(number)
        if warning is not None:
            warned(f"restart {number}: {warning}")
        run.train(until, folder, stepped=stepped)
        if run.is_finished:
            keep(run.finish(), folder)


def keep(result: FitResult, folder: RunFolder) -> None:
    """Write what a start found; the summary comes last, and says that it ended."""
    if result.arrays is not None:
        write_start(_arrays_file(folder), StartArrays.of(result.arrays))
    folder.write_summary({**result.summary, "fingerprint": result.fingerprint})


def read(starts: Starts, number: int, fingerprint: str) -> FoundStart:
    """Read what a start found.

    Args:
        starts: Data, configuration and folder.
        number: Which start.
        fingerprint: Hash of its configuration and data.

    Raises:
        CheckpointError: It is of another configuration.
        OtherDataError: It is of other samples.
        ValueError: Its files can't be read.
    """
    folder = starts.folder(number)
    found = found_start(folder, number)
    if found.summary.get("fingerprint") != fingerprint:
        check_samples(load_checkpoint(folder.checkpoints), starts.data, str(folder.path))
        raise CheckpointError(
            f"{folder.path} is of another configuration or other data; resume with those that the run was started "
            "with, or start a new run"
        )
    return found


def found_start(folder: RunFolder, number: int) -> FoundStart:
    """What is in the folder of a start that ended.

    Raises:
        ValueError: Its summary can't be read.
    """
    summary = folder.read_summary()
    return FoundStart(number, summary, None if summary["status"] == "diverged" else _arrays_file(folder))


def _arrays_file(folder: RunFolder) -> Path:
    return folder.path / "start.npz"
