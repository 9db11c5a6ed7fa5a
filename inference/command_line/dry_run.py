"""What a run would be: shapes, parameters, memory and a time estimate."""

from __future__ import annotations

import time

from torch import nn

from inference.training.run import Run

__all__ = ["describe", "training_seconds"]

_TIMED_STEPS = 5


def describe(run: Run, folder: str) -> str:
    """Lines for people; the run is no more good for training after it.

    Args:
        run: A run that was prepared.
        folder: Where it would go.
    """
    return "\n".join(
        [
            *_data(run),
            *_networks(run),
            f"memory   about {_memory(run) / 2**20:.0f} MiB for data, parameters, optimiser and one batch",
            f"time     about {training_seconds(run):.0f} s for {run.config.total_epochs} epochs here, "
            "without read-out and figures",
            f"folder   {folder} (not made)",
        ]
    )


def _data(run: Run) -> list[str]:
    n_training = int((run.split == "train").sum())
    head = f"data     {run.data.name}: {run.data.n_samples} samples, {n_training} for training"
    shapes = {name: "x".join(map(str, values.shape[1:])) for name, values in run.data.modalities.items()}
    return [head, *(f"  {name:<20} {shape}" for name, shape in shapes.items())]


def _networks(run: Run) -> list[str]:
    model, guide, config = run.state.model, run.state.guide, run.config
    nodes = ", ".join(f"{name} ({outcomes})" for name, outcomes in config.nodes.items())
    head = f"model    {model.graph.n_cells} cells of nodes {nodes}; latent dimension {model.mixture.latent_dim}"
    parts: dict[str, nn.Module] = {f"encoder of {name}": module for name, module in guide.encoders.items()}
    parts |= {f"decoder of {name}": module for name, module in model.decoders.items()}
    parts["graph"] = model.graph
    return [head, *(f"  {name:<20} {_n_parameters(part):,} parameters" for name, part in parts.items())]


def _n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _memory(run: Run) -> int:
    """Data in memory twice (all, by split); parameters with gradients, two moments, best ones; batch tensors."""
    data = 2 * run.tensors.n_bytes
    parameters = 5 * sum(p.numel() * p.element_size() for p in run.state.modules.parameters())
    per_sample = 4 * run.tensors.n_bytes_per_sample
    return data + parameters + per_sample * min(run.config.training.batch_size, run.data.n_samples)


def training_seconds(run: Run) -> float:
    """Time of some pretraining steps, times the number of steps planned; the run is no more good for training."""
    n_steps = -(-run.task.training.n_samples // run.config.training.batch_size) * run.config.total_epochs
    run.rehearse(1)
    began = time.perf_counter()
    run.rehearse(_TIMED_STEPS)
    return (time.perf_counter() - began) / _TIMED_STEPS * n_steps
