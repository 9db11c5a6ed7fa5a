"""A run from data to fitted model: prepared, trained with checkpoints, resumed exactly, finished."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from inference.data.multimodal import MultimodalData
from inference.data.tensors import TensorData, fingerprint, split_samples, to_tensors
from inference.results.collect import Fitted, collect
from inference.results.fit_result import FitResult
from inference.results.run_folder import RunFolder
from inference.results.summary import diverged_summary, fit_status, summarise
from inference.training.build import build
from inference.training.checkpoint import load_checkpoint, save_checkpoint
from inference.training.config import FitConfig
from inference.training.epochs import pretraining_step
from inference.training.loop import Task, finish, is_finished, run_epochs, training_settings
from inference.training.state import TrainingState, make_optimizer

__all__ = ["Run", "choose_device"]


def choose_device(name: str) -> torch.device:
    """A device that is there.

    Raises:
        ValueError: It is not.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device: expected one that this machine has, for example cpu, got {name!r}") from error
    return device


class Run:
    """One fit of one configuration to one data set.

    All randomness comes from torch's generator, seeded by the configuration; the caller's generator is not touched, so
    two runs in one process equal two runs in two processes.

    Args:
        data: The samples.
        config: The configuration; modalities without an entry get one by their kind.
        device: Where to compute.

    Raises:
        ValueError: The data have too few samples for the cells, or a modality of the configuration is not there.
    """

    def __init__(self, data: MultimodalData, config: FitConfig, device: str = "cpu") -> None:
        self.data, self.config = data, config
        self.device = choose_device(device)
        self.split = split_samples(data.n_samples, config.training.validation_fraction, config.seed)
        _check(data, config, self.split)
        self.fingerprint = config.fingerprint(fingerprint(data))
        with torch.random.fork_rng():
            torch.manual_seed(config.seed)
            self._build()
            self._rng = _rng()
        self.seconds_finishing = 0.0

    def _build(self) -> None:
        is_training = self.split == "train"
        scaled = {name: entry.standardise for name, entry in self.config.modality.items()}
        self.tensors = to_tensors(self.data, is_training, scaled, self.device)
        shapes = {name: values.shape[1:] for name, values in self.data.modalities.items()}
        model, guide = build(self.config, shapes)
        model, guide = model.to(self.device), guide.to(self.device)
        self.state = TrainingState(model, guide, make_optimizer(model, guide, self.config))
        validation = self._subset("validation") if (self.split == "validation").any() else None
        self.task = Task.of(self.config, self._subset("train"), validation)

    def _subset(self, part: str) -> TensorData:
        return self.tensors.subset(np.flatnonzero(self.split == part))

    @property
    def is_finished(self) -> bool:
        """Whether there are no more epochs to run."""
        return is_finished(self.state, self.config)

    @contextmanager
    def _own_generator(self) -> Iterator[None]:
        """Torch's generator as this run left it; the caller's comes back after."""
        with torch.random.fork_rng():
            _set_rng(self._rng)
            yield
            self._rng = _rng()

    def train(self, until: int | None = None, folder: RunFolder | None = None, progress: bool = False) -> None:
        """Run epochs, with a checkpoint after each.

        Args:
            until: Number of finished epochs (pretraining included) at which to stop; None: all that are planned.
            folder: Where checkpoints and metrics go; None keeps nothing on disk.
            progress: Show a progress bar on standard error.
        """
        until = self.config.total_epochs if until is None else min(until, self.config.total_epochs)
        with self._own_generator(), training_settings(), self._bar(until, progress) as bar:
            if folder is not None and self.state.epoch == 0:
                self._save(folder)
            run_epochs(self.state, self.task, until, bar.update, lambda state: self._epoch_done(state, folder, bar))

    def _bar(self, until: int, progress: bool) -> tqdm:
        steps = math.ceil(self.task.training.n_samples / self.config.training.batch_size)
        total, initial = until * steps, self.state.epoch * steps
        return tqdm(total=total, initial=initial, unit="step", disable=not progress, leave=False, dynamic_ncols=True)

    def _epoch_done(self, state: TrainingState, folder: RunFolder | None, bar: tqdm) -> None:
        record = state.history[-1]
        bar.set_description(f"{record['phase']} {state.epoch}/{self.config.total_epochs}", refresh=False)
        bar.set_postfix(_postfix(record), refresh=False)
        if folder is not None:
            self._save(folder)

    def _save(self, folder: RunFolder) -> None:
        state = self.state
        save_checkpoint(folder.checkpoints, state.epoch, state.weights(), state.scalars(), self.fingerprint)
        folder.write_metrics(state.history)

    def restore(self, folder: RunFolder) -> str | None:
        """Go on from the newest valid checkpoint of a folder; returns a warning if a damaged one was passed over.

        Raises:
            CheckpointError: There is none, or it is of another configuration or other data.
        """
        checkpoint = load_checkpoint(folder.checkpoints, self.fingerprint)
        with torch.random.fork_rng():
            self.state.restore(checkpoint.weights, checkpoint.state)
            self._rng = _rng()
        return checkpoint.warning

    def finish(self) -> FitResult:
        """Read the clusters out for good and collect what the fit found."""
        if self.state.diverged is not None:
            return self._diverged(self.state.diverged)
        began = time.perf_counter()
        with self._own_generator(), training_settings():
            finish(self.state, self.task)
            arrays = collect(self._fitted())
        arrays = dataclasses.replace(arrays, status=fit_status(arrays.responsibilities))
        summary = summarise(arrays, time.perf_counter() - began)
        return FitResult(self.config.to_dict(), summary, list(self.state.history), arrays, self.weights(), self.fingerprint)

    def rehearse(self, n_steps: int) -> None:
        """Take some gradient steps, to see how long they take; the run is no more good for training after it."""
        with self._own_generator(), training_settings():
            batch = next(self.task.training.batches(self.config.training.batch_size))
            for _ in range(n_steps):
                pretraining_step(self.state, batch, 1.0)

    def weights(self) -> dict[str, Tensor]:
        """Weights of model and guide as they are now."""
        return {name: value.detach().clone() for name, value in self.state.modules.state_dict().items()}

    def _diverged(self, reason: str) -> FitResult:
        state, config = self.state, self.config
        summary = diverged_summary(
            self.data.name, config.seed, self.data.n_samples, config.nodes, state.history, reason
        )
        return FitResult(config.to_dict(), summary, list(state.history), None, self.weights(), self.fingerprint)

    def _fitted(self) -> Fitted:
        return Fitted(
            model=self.state.model,
            guide=self.state.guide,
            objective=self.config.objective,
            seed=self.config.seed,
            status="ok",
            data=self.data,
            tensors=self.tensors,
            split=self.split,
            history=self.state.history,
            attributes={"config": self.config.to_dict()},
        )


def _check(data: MultimodalData, config: FitConfig, split: np.ndarray) -> None:
    n_cells, n_training = math.prod(config.outcomes), int((split == "train").sum())
    if n_training < n_cells:
        raise ValueError(
            f"nodes: expected at least as many training samples as the {n_cells} cells, got {n_training}; "
            "give fewer nodes or outcomes, or more samples"
        )
    if set(data.modalities) != set(config.modality):
        raise ValueError(
            f"modality: expected settings for {sorted(data.modalities)}, the modalities of {data.name}, "
            f"got {sorted(config.modality)}"
        )
    present = np.stack(list(data.present.values()))
    if not config.guide.prior_expert and not present.any(0).all():
        raise ValueError(
            f"{data.name}: expected at least one modality per sample, got none for {int((~present.any(0)).sum())}; "
            "leave these samples out or set guide.prior_expert"
        )


def _postfix(record: Mapping[str, Any]) -> dict[str, str]:
    shown = {"ELBO": f"{record['objective']:.1f}"}
    if "effective_components" in record:
        shown["cells"] = f"{record['effective_components']:.1f}"
    return shown


def _rng() -> list[Tensor]:
    cuda = list(torch.cuda.get_rng_state_all()) if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *cuda]


def _set_rng(states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])
