"""One start of several, in a folder of its own: trained, gone on with, and what it found kept for the comparison."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.findings.arrays import FoundStart, StartArrays, write_start
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.store.files import make_folder, remove_folder
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.batched import (
    Group,
    Records,
    Stack,
    batched_support,
    evaluate,
    noting_divergence,
    pretraining_epoch,
    seed_of_order,
    training_epoch,
)
from causalpima.inference.training.build import Supplied
from causalpima.inference.training.checkpoint import CheckpointError, load_checkpoint
from causalpima.inference.training.clustering import start_clusters
from causalpima.inference.training.components import Components
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.loop import Phase, decoder_variances, next_phase, record_epoch
from causalpima.inference.training.prepared_run import check_samples
from causalpima.inference.training.state import TrainingState, check_weights, seed_generators, surroundings

__all__ = [
    "Starts",
    "found_start",
    "keep",
    "read",
    "run_batched",
    "run_start",
    "train_batched",
]


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


# Training of several starts of one configuration as one computation.


Stepped = Callable[[int], None]


def train_batched(
    runs: Sequence[Run],
    folders: Sequence[RunFolder] | None = None,
    until: int | None = None,
    stepped: Stepped = lambda steps: None,
) -> None:
    """Train several starts as one computation; then each is where its own `train` would have left it.

    All starts see the same minibatches, each with noise of its own. What comes out is therefore not what each start
    alone comes to, but distributed alike; it is the same for the same seed whichever the other starts are, up to the
    rounding of sums. Starts that stopped early, or diverged, drop out. Distillation, which follows joint training, is
    done for one start after the other.

    A start whose state was restored from a checkpoint goes on from it; one that is behind the others catches up first.

    Args:
        runs: The starts; their data and configurations are the same but for `restart`.
        folders: Where checkpoints and metrics of each go after every epoch; None keeps nothing on disk.
        until: Number of finished epochs (pretraining included) at which to stop; None: all that are planned.
        stepped: Called after every step of all starts, with the number of starts that took it.

    Raises:
        ValueError: They differ in more than `restart`, or can't be batched (`batched_support`).
    """
    _check(runs)
    planned = runs[0].config.total_epochs
    until = planned if until is None else min(until, planned)
    for number, run in enumerate(runs):
        if folders is not None and run.state.epoch == 0:
            run.save(folders[number])
    _Batches(runs, folders, stepped).train(until)
    for number, run in enumerate(runs):
        run.train(until, None if folders is None else folders[number], stepped=lambda: stepped(1))


def _check(runs: Sequence[Run]) -> None:
    alike = [replace(run.config, restart=0) for run in runs]
    if not runs or any(config != alike[0] for config in alike) or len({r.config.restart for r in runs}) < len(runs):
        raise ValueError("runs: expected several starts that differ in restart and in nothing else, got others")
    first = runs[0]
    reason = batched_support(first.config, first.modalities, first.decoders, first.components)
    if reason is not None:
        raise ValueError(f"runs: expected starts that can be trained as one computation, got some where {reason}")


class _Batches:
    """The epochs that are batched.

    Args:
        runs: The starts.
        folders: Of each, or None.
        stepped: See `train_batched`.
    """

    def __init__(self, runs: Sequence[Run], folders: Sequence[RunFolder] | None, stepped: Stepped) -> None:
        self._runs, self._folders, self._stepped = runs, folders, stepped
        self._group: Group | None = None

    def train(self, until: int) -> None:
        """Run epochs until all starts finished `until` of them, or have none left that are batched."""
        try:
            while phases := self._next(until):
                self._epoch(phases)
        finally:
            self._release()

    def _next(self, until: int) -> dict[int, Phase]:
        """The next phase of those starts that are furthest behind; all of them are in the same."""
        phases: dict[int, Phase] = {}
        for number, run in enumerate(self._runs):
            phase = next_phase(run.state, run.config) if run.state.epoch < until else None
            if phase is not None and phase in _EPOCHS:
                phases[number] = phase
        first = min((self._runs[number].state.epoch for number in phases), default=0)
        return {number: phase for number, phase in phases.items() if self._runs[number].state.epoch == first}

    def _epoch(self, phases: dict[int, Phase]) -> None:
        began, phase = time.perf_counter(), next(iter(phases.values()))
        first = self._runs[next(iter(phases))]
        with surroundings(first.device):
            seed_generators(seed_of_order(first.config, first.state.epoch), first.device)
            group = self._gather([self._runs[number] for number in phases], phase)
            if group is not None:
                records = _EPOCHS[phase](group, first.task.training, lambda: self._stepped(len(group.alive)))
                _close(group, records, first.task.validation, began)
        self._save(phases)

    def _gather(self, runs: Sequence[Run], phase: Phase) -> Group | None:
        """The starts of an epoch; as they are if they were those of the last one. None if all of them diverged."""
        if phase == "training" and not all(run.state.clustered for run in runs):
            self._release()
            for run in runs:
                _start_clusters(run)
        active = [run for run in runs if run.state.diverged is None]
        if self._group is not None and _are_same(self._group.states, [run.state for run in active]):
            self._group.begin()
            return self._group
        self._release()
        if active:
            self._group = Group([run.config for run in active], Stack([run.state for run in active]))
        return self._group

    def _release(self) -> None:
        if self._group is not None:
            self._group.stack.release_all()
        self._group = None

    def _save(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if self._folders is not None and self._runs[number].state.diverged is None:
                self._runs[number].save(self._folders[number])


_EPOCHS: Mapping[Phase, Callable[[Group, TensorData, Callable[[], None]], Records]] = {
    "pretraining": pretraining_epoch,
    "training": training_epoch,
}


def _are_same(ones: Sequence[TrainingState], others: Sequence[TrainingState]) -> bool:
    return len(ones) == len(others) and all(one is other for one, other in zip(ones, others, strict=True))


def _start_clusters(run: Run) -> None:
    if not run.state.clustered:
        with noting_divergence(run.state):
            start_clusters(run.state, run.task.training, run.config, keep_cells=False, labeller=run.task.labeller)
            run.state.clustered = True


def _close(group: Group, records: Records, validation: TensorData | None, began: float) -> None:
    """What the training loop does at the end of an epoch, for every start; they share its time."""
    held_out: Records = {k: {"validation_objective": None} for k in records}
    if validation is not None:
        is_joint = any(record["phase"] == "training" for record in records.values())
        held_out = evaluate(group, validation, is_joint)
    seconds = (time.perf_counter() - began) / len(group.states)

    def close(k: int, state: TrainingState) -> None:
        check_weights(state.modules)
        record_epoch(state, {**records[k], **held_out[k], "decoder_variance": decoder_variances(state)}, seconds)

    group.for_each(close)
    group.stack.hand_back_moments()


# Starts as one computation, in this process.


def run_batched(
    starts: Starts,
    numbers: Sequence[int],
    until: int | None,
    stepped: Callable[[int], None],
    warned: Callable[[str], object],
) -> None:
    """Train starts together, with a checkpoint of each after every epoch, and keep what they found if all end.

    None is kept before all have ended: one that goes on alone would round its sums otherwise.

    Args:
        starts: Data, configuration and folder.
        numbers: Which starts.
        until: Number of finished epochs at which to stop; None: all that are planned.
        stepped: Called with the number of starts that took a step.
        warned: Called with what the user should know.

    Raises:
        OutputError: The disk is full, or another process is at one of them.
        CheckpointError: See `Starts.go_on`.
    """
    folders = [starts.folder(number) for number in numbers]
    with ExitStack() as stack:
        for folder in folders:
            make_folder(folder.path)
            stack.enter_context(folder.in_use())
        _to_one_epoch(folders)
        runs = [_go_on(starts, number, warned) for number in numbers]
        train_batched(runs, folders, until, stepped)
        if all(run.is_finished for run in runs):
            for run, folder in zip(runs, folders, strict=True):
                keep(run.finish(), folder)


def _to_one_epoch(folders: Sequence[RunFolder]) -> None:
    """Undo the newest epoch where a kill left some starts with its checkpoint and others without.

    The others would catch up without their company, and round sums otherwise than together. Every start keeps two
    checkpoints. Starts that are further behind dropped out earlier.
    """
    newest = [max(_epochs(folder), default=0) for folder in folders]
    last = max(newest)
    if last - 1 in newest:
        for folder in folders:
            remove_folder(folder.checkpoints / f"epoch-{last:06d}")


def _epochs(folder: RunFolder) -> list[int]:
    names = [path.name.removeprefix("epoch-") for path in folder.checkpoints.glob("epoch-*")]
    return [int(name) for name in names if name.isdigit()]


def _go_on(starts: Starts, number: int, warned: Callable[[str], object]) -> Run:
    run, warning = starts.go_on(number)
    if warning is not None:
        warned(f"restart {number}: {warning}")
    return run
