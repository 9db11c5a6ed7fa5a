"""Training of several starts of one configuration as one computation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from inference.data.tensors import TensorData
from inference.results.run_folder import RunFolder
from inference.training.batched.draws import seed_of_order
from inference.training.batched.epochs import Records, evaluate, pretraining_epoch, training_epoch
from inference.training.batched.group import Group, noting_divergence
from inference.training.batched.stack import Stack
from inference.training.batched.support import batched_support
from inference.training.clustering import start_clusters
from inference.training.divergence import check_weights
from inference.training.loop import Phase, decoder_variances, next_phase, record_epoch
from inference.training.run import Run
from inference.training.state import TrainingState
from inference.training.surroundings import seed_generators, surroundings

__all__ = ["train_batched"]

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
