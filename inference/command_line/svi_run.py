"""What `python -m inference.svi` does with its arguments."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from inference.command_line.errors import FAILED_FIT
from inference.command_line.svi_arguments import Arguments, parse_settings, refuse_with_resume
from inference.results.files import write_json
from inference.results.run_folder import RunFolder, next_run_folder
from inference.training.run import Run

__all__ = ["Job", "dry_run", "run", "settle"]

_TIMED_STEPS = 5


@dataclass(frozen=True)
class Job:
    """Arguments with the folder that they lead to.

    Attributes:
        arguments: The arguments; of a resumed run, those that it was started with.
        folder: Its run folder.
    """

    arguments: Arguments
    folder: RunFolder


def settle(arguments: Arguments, argv: Sequence[str]) -> Job:
    """Find the run folder; for `--resume`, the settings that the run was started with.

    Raises:
        ValueError: The folder holds no run, or flags came with `--resume` that would change it.
    """
    if arguments.resume is None:
        folder = arguments.output_dir or next_run_folder(arguments.dataset)
        return Job(arguments, RunFolder(folder))
    refuse_with_resume(argv)
    folder = RunFolder(arguments.resume)
    started = parse_settings(folder.read_config())
    kept = ("resume", "stop_after", "quiet", "json")
    changes = {name: getattr(arguments, name) for name in kept}
    if "--device" in " ".join(argv):
        changes["device"] = arguments.device
    return Job(dataclasses.replace(started, **changes), folder)


def run(job: Job) -> int:
    """Train, finish, write the run folder, print the table; returns the exit status."""
    arguments, folder = job.arguments, job.folder
    fit = _prepare(arguments)
    if arguments.resume is None:
        folder.create(arguments.force)
        folder.write_config(arguments.to_config())
    else:
        _say(fit.restore(folder))
    if not _train(fit, job):
        return 0
    result = fit.finish()
    result.write(folder)
    if arguments.json is not None:
        write_json(arguments.json, result.summary)
    print(result.table({"output_dir": str(folder.path)}))
    return 0 if result.status == "ok" else FAILED_FIT


def _prepare(arguments: Arguments) -> Run:
    torch.set_num_threads(arguments.threads)
    return Run(arguments.make_data(), arguments.config, arguments.device)


def _train(fit: Run, job: Job) -> bool:
    """Train; whether all epochs are done. Ctrl-C leaves the last finished epoch and says how to go on."""
    progress = not job.arguments.quiet and sys.stderr.isatty()
    how = f"go on with: python -m inference.svi --resume {job.folder.path}"
    try:
        fit.train(job.arguments.stop_after, job.folder, progress)
    except KeyboardInterrupt:
        print(f"interrupted; the last finished epoch is saved; {how}", file=sys.stderr)
        raise
    if not fit.is_finished:
        print(f"stopped after epoch {fit.state.epoch} of {fit.config.total_epochs}; {how}")
    return fit.is_finished


def _say(warning: str | None) -> None:
    if warning is not None:
        print(f"warning: {warning}", file=sys.stderr)


def dry_run(job: Job) -> int:
    """Print shapes, parameters, memory and a time estimate; nothing is written."""
    fit = _prepare(job.arguments)
    networks = {f"encoder of {name}": module for name, module in fit.state.guide.encoders.items()}
    networks |= {f"decoder of {name}": module for name, module in fit.state.model.decoders.items()}
    networks["graph"] = fit.state.model.graph
    lines = [f"data     {fit.data.name}: {fit.data.n_samples} samples, {int((fit.split == 'train').sum())} for training"]
    lines += [f"  {name:<20} {'x'.join(map(str, v.shape[1:]))}" for name, v in fit.data.modalities.items()]
    lines += [f"model    {fit.state.model.graph.n_cells} cells of nodes {dict(fit.config.nodes)}, latent dimension "
              f"{fit.config.model.latent_dim}"]
    lines += [f"  {name:<20} {sum(p.numel() for p in module.parameters()):,} parameters" for name, module in networks.items()]
    lines += [f"memory   about {_memory(fit) / 2**20:.0f} MiB for data, parameters, optimiser and one batch"]
    lines += [f"time     about {_seconds(fit):.0f} s for {fit.config.total_epochs} epochs here, without read-out and figures"]
    lines += [f"folder   {job.folder.path} (not made)"]
    print("\n".join(lines))
    return 0


def _memory(fit: Run) -> int:
    data = 2 * sum(value.nbytes for value in fit.tensors.values.values())
    parameters = 5 * sum(p.numel() * p.element_size() for p in fit.state.modules.parameters())
    per_sample = sum(4 * value[0].numel() * value.element_size() for value in fit.tensors.values.values())
    return data + parameters + per_sample * fit.config.training.batch_size


def _seconds(fit: Run) -> float:
    """Time of some pretraining steps, times the number of steps planned."""
    size = fit.config.training.batch_size
    n_steps = -(-fit.task.training.n_samples // size)
    fit.rehearse(1)
    began = time.perf_counter()
    fit.rehearse(_TIMED_STEPS)
    return (time.perf_counter() - began) / _TIMED_STEPS * n_steps * fit.config.total_epochs
