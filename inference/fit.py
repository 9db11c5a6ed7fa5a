"""`fit`: from data to a finished fit in one call."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import DataLike, as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.restarts import RestartedRun, RestartMode, RestartPlan
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.build import Supplied, needs_no_distillation
from causalpima.inference.training.components import Components
from causalpima.inference.training.config import DistillationConfig, FitConfig, default_config
from causalpima.inference.training.user_code import remember_code

__all__ = [
    "fit",
]


NodesLike = Mapping[str, int] | Sequence[int]


def fit(
    data: DataLike,
    nodes: NodesLike | None = None,
    seed: int | None = None,
    *,
    options: ReadOptions | None = None,
    config: FitConfig | None = None,
    mask: Mapping[str, Sequence[str]] | None = None,
    decoders: Supplied | None = None,
    components: Components | None = None,
    device: str = "cpu",
    output_dir: Path | str | None = None,
    progress: bool = False,
    restarts: int = 1,
    jobs: int | None = None,
    restart_mode: RestartMode = "auto",
) -> FitResult:
    """Fit causalPIMA to data.

    Args:
        data: `MultimodalData`; an array `[sample, ...]`; a dict of such arrays, one per modality; an `xarray.Dataset`
            with one variable per modality; or the path of a netCDF, zarr or npz file. NaN is missing
            (docs/own_data.md).
        nodes: Outcomes per node: `{"type": 2, "response": 3}` or `[2, 3]`. Needed unless `config` has them.
        seed: Seed of everything random; default that of `config`, else 0.
        options: Which variables are modalities, labels, groups and covariates; default what the data say themselves.
        config: All other settings; modalities without an entry get that of `default_config`, as everything does
            without it.
        mask: Nodes that each modality sees: `{"image": ["shape", "hue"], "spectrum": ["hue"]}` (docs/masks.md);
            default that of `config`.
        decoders: Physics laws or decoders of your own in place of the configured ones, by modality (docs/physics.md).
        components: Graph, prior, fusion or encoders of your own in place of the configured ones (docs/components.md).
        device: Where to compute.
        output_dir: Run folder to leave (with checkpoints while training); None keeps nothing on disk.
        progress: Show a progress bar on standard error.
        restarts: Number of starts, of which the one with the clearest clusters is returned (docs/restarts.md).
        jobs: How many starts run at once, each in a process of its own; default as many as there are cores.
        restart_mode: Run the starts in `processes`, or `batched` as one computation; `auto` is the former on a CPU with
            several cores.

    Returns:
        The fit. If it failed (`status` is `collapsed` or `diverged`), a `RuntimeWarning` says why; so it does if data
        may be no measurements, and for everything that makes the verdict on the best of several starts doubtful
        (`FitResult.verdict`).

    Raises:
        ValueError: Data or settings that cannot be fitted, named in the message.
    """
    samples = as_multimodal(data, options)
    for note in samples.notes:
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    settings = _settings(samples, nodes, seed, config)
    if config is None and components is not None and needs_no_distillation(settings, components):
        settings = dataclasses.replace(settings, distillation=DistillationConfig(0))
    if mask is not None:
        settings = _masked(settings, mask, config is None)
    plan = RestartPlan(restarts, jobs, mode=restart_mode)
    plan.check(settings)
    run = Run(samples, settings, device, decoders, components)
    remember_code(settings.to_dict())
    result = _run(run, output_dir, progress) if plan.n == 1 else _run_starts(run, plan, output_dir, progress)
    if result.verdict.state == "failed" or plan.n > 1:
        for reason in result.verdict.reasons:
            warnings.warn(reason, RuntimeWarning, stacklevel=2)
    return result


def _run(run: Run, output_dir: Path | str | None, progress: bool) -> FitResult:
    if output_dir is None:
        run.train(progress=progress)
        return run.finish()
    folder = RunFolder(output_dir)
    folder.create(run.config.to_dict())
    with folder.in_use():
        run.train(folder=folder, progress=progress)
        result = run.finish()
        result.write(folder)
    return result


def _run_starts(first: Run, plan: RestartPlan, output_dir: Path | str | None, progress: bool) -> FitResult:
    if output_dir is None:
        with TemporaryDirectory(prefix="restarts-") as home:
            return _finished_starts(RestartedRun(first, plan, RunFolder(home)), progress)
    folder = RunFolder(output_dir)
    folder.create(first.config.to_dict() | {"restarts": plan.n})
    with folder.in_use():
        result = _finished_starts(RestartedRun(first, plan, folder), progress)
        result.write(folder)
    return result


def _finished_starts(run: RestartedRun, progress: bool) -> FitResult:
    run.train(progress=progress)
    return run.finish()


def _settings(data: MultimodalData, nodes: NodesLike | None, seed: int | None, config: FitConfig | None) -> FitConfig:
    if config is None and nodes is None:
        raise ValueError("nodes: expected the outcomes per node, for example {'type': 2, 'response': 3}, got none")
    named = _named(nodes) if nodes is not None else dict(config.nodes if config is not None else {})
    default = default_config(data, named)
    base = config or default
    modality = {name: base.modality.get(name) or entry for name, entry in default.modality.items()}
    modality |= {name: entry for name, entry in base.modality.items() if name not in modality}
    return dataclasses.replace(base, nodes=named, seed=base.seed if seed is None else seed, modality=modality)


def _masked(settings: FitConfig, mask: Mapping[str, Sequence[str]], is_default: bool) -> FitConfig:
    """The settings with a mask; of the defaults without distillation, of which there is none under a mask."""
    distillation = DistillationConfig(0) if is_default else settings.distillation
    seen = {name: tuple(nodes) for name, nodes in mask.items()}
    return dataclasses.replace(settings, mask=seen, distillation=distillation)


def _named(nodes: NodesLike) -> dict[str, int]:
    if isinstance(nodes, str) or not isinstance(nodes, Mapping | Sequence | np.ndarray):
        raise ValueError(f"nodes: expected outcomes per node as {{'type': 2, 'response': 3}} or [2, 3], got {nodes!r}")
    if isinstance(nodes, Mapping):
        return dict(nodes)
    return {f"N{position}": outcomes for position, outcomes in enumerate(nodes, start=1)}
