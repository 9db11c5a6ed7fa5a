"""The settings and the samples of a run, from its folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from causalpima.inference.command_line.svi_parser import Arguments, parse_settings
from causalpima.inference.command_line.svi_settings import flag_names
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.stored import StoredArray
from causalpima.inference.reporting.content import content_of_folder
from causalpima.inference.reporting.page import write_report
from causalpima.inference.run import Run
from causalpima.inference.store.files import OutputError, make_folder, write_json
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.checkpoint import load_checkpoint
from causalpima.inference.training.config import ModalityConfig
from causalpima.inference.training.fitted_run import check_finished
from causalpima.inference.training.prepared_run import OtherDataError, check_samples

__all__ = [
    "data_of_run",
    "data_or_note",
    "describe",
    "keep_results",
    "naming_source",
    "reading_table",
    "settings_of_run",
    "training_seconds",
]


def settings_of_run(folder: RunFolder) -> Arguments:
    """What a run was started with; its file is looked for where it was, if it is not where the settings say.

    Raises:
        ValueError: The folder holds no run of the command line, or its data cannot be read.
    """
    settings = folder.read_config()
    if not _names_data(settings):
        raise ValueError(
            f"{folder.path}: expected a run of python -m inference.svi, got one of the Python call fit, whose "
            "config.yaml names no data; call fit again"
        )
    try:
        return parse_settings(_located(settings))
    except ValueError as error:
        raise ValueError(f"{folder.config}: {error}") from error


def data_of_run(folder: RunFolder, with_labels: bool = True) -> MultimodalData | None:
    """The samples of a finished run; None for one of the Python call `fit`, which names none.

    Args:
        folder: The folder of the run.
        with_labels: Whether labels have to be those of the fit, too.

    Raises:
        OtherDataError: They are not those that the run was fitted to.
        ValueError: They cannot be read any more.
    """
    if not _names_data(folder.read_config()):
        return None
    settings = settings_of_run(folder)
    data = settings.make_data()
    check_finished(folder)
    with naming_source(settings):
        # Final weights under names keep the fingerprint of the settings before there were any.
        checkpoint = load_checkpoint(folder.found_weights)
        check_samples(checkpoint, data, str(folder.path), with_labels)
    return data


@contextmanager
def naming_source(settings: Arguments) -> Iterator[None]:
    """Begin the message of an `OtherDataError` with the file, or the data set, that the samples come from."""
    try:
        yield
    except OtherDataError as error:
        source = settings.name if settings.file is None else settings.file.resolved
        raise OtherDataError(f"{source}: {error}") from error


def data_or_note(folder: RunFolder) -> MultimodalData | None:
    """The samples of a run; None, and a note on standard error, where they cannot be had.

    Raises:
        OtherDataError: There are some, and they are not those that the run was fitted to.
    """
    try:
        data = data_of_run(folder)
    except OtherDataError:
        raise
    except ValueError as error:
        print(f"note: without the samples of the run ({error}), what needs them is left out", file=sys.stderr)
        return None
    if data is None:
        print("note: the run names no data, so that what needs the samples is left out", file=sys.stderr)
    return data


def _names_data(settings: Mapping[str, Any]) -> bool:
    return bool({"dataset", "data"} & set(settings))


def _located(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """A run goes on with the file that it began with, from whichever folder it is told to."""
    resolved = settings.get("data_resolved")
    return {**settings, "data": resolved} if isinstance(resolved, str) and Path(resolved).exists() else settings


# What was read from a file, and what was chosen for it.


_HEAD = ("modality", "shape", "kind", "unit", "samples", "missing", "encoder", "decoder", "likelihood", "scale")


def reading_table(run: Run) -> str:
    """Lines for people: the samples, a row per modality, and how to choose otherwise.

    Args:
        run: A run that was prepared.
    """
    data, config = run.data, run.config
    rows = [_HEAD, *(_row(data, name, config.modality[name]) for name in data.modalities)]
    notes = [f"note: {note}" for note in data.notes]
    return "\n".join([_samples(run), *_aligned(rows), *_how_to_change(data), *notes])


def _samples(run: Run) -> str:
    data = run.data
    parts = ", ".join(f"{count} {part}" for part, count in _counts(run.split).items())
    known = _labels(run)
    known += [f"{len(np.unique(data.groups))} groups, kept whole"] if data.groups is not None else []
    known += [f"covariates {', '.join(data.covariates)}"] if data.covariates else []
    known += [f"environments {', '.join(data.environment_names)}"] if data.environment is not None else []
    return "; ".join([f"{data.name}: {data.n_samples} samples ({parts})", *known])


def _labels(run: Run) -> list[str]:
    """Which labels name nodes, and which only serve scores."""
    observed = run.config.observe.variables
    named = [f"labels {variable} of node {node}" for node, variable in observed.items()]
    others = [name for name in run.data.factors if name not in observed.values()]
    return [*named, *([f"labels {', '.join(others)} (for evaluation only)"] if others else [])]


def _counts(split: np.ndarray) -> dict[str, int]:
    return {part: int((split == part).sum()) for part in ("train", "validation", "test") if (split == part).any()}


def _row(data: MultimodalData, name: str, entry: ModalityConfig) -> tuple[str, ...]:
    present = data.present[name]
    return (
        name,
        "x".join(map(str, data.modalities[name].shape[1:])),
        data.kinds[name],
        data.units.get(name, "-"),
        str(int(present.sum())),
        _missing(data, name),
        _network(entry.encoder.kind, entry.encoder.sizes),
        _network(entry.decoder.kind, entry.decoder.sizes),
        entry.decoder.likelihood,
        _scale(entry),
    )


def _missing(data: MultimodalData, name: str) -> str:
    """Share of elements that are missing in the samples that have the modality."""
    if name not in data.observed:
        return "0 %"
    observed = data.observed[name]
    n_measured = observed.count if isinstance(observed, StoredArray) else int(observed.sum())
    n_elements = int(data.present[name].sum()) * int(np.prod(observed.shape[1:]))
    return f"{100 * (1 - n_measured / n_elements):.2g} %"


def _network(kind: str, sizes: Sequence[int]) -> str:
    return f"{kind} {','.join(map(str, sizes))}"


def _scale(entry: ModalityConfig) -> str:
    words: list[str] = [entry.transform] if entry.transform != "identity" else []
    words += ["standardised"] if entry.standardise else []
    words += [f"weight {entry.weight:g}"] if entry.weight != 1 else []
    return ", ".join(words) or "as it is"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _how_to_change(data: MultimodalData) -> list[str]:
    words = flag_names(data.modalities)
    renamed = [f"{name} is {word}" for name, word in words.items() if name != word]
    line = (
        f"change with --modality.{next(iter(words.values()))}.encoder.kind and the like (--help_all lists them), or "
        "with --kinds NAME=curve"
    )
    return [line, *([f"in flags, {', '.join(renamed)}"] if renamed else [])]


# What a run would be: shapes, parameters, memory and a time estimate.


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


# Results of a command about a finished run are kept in its folder, and its page is written anew.


def keep_results(
    folder: RunFolder,
    name: str,
    results: Mapping[str, Any],
    write_figures: Callable[[Path], object],
    json: Path | None = None,
    figures: Path | None = None,
    write_files: Callable[[Path], object] = lambda _: None,
) -> None:
    """Write `NAME.json` and figures into the folder of the run, and its page with them, in one step.

    A folder that cannot be written to keeps nothing, and this is told; what was asked for elsewhere is written.

    Args:
        folder: The folder of the run.
        name: Of the command, `check`.
        results: What it found.
        write_figures: Writes its figures into a folder.
        json: Another file for the results, or None.
        figures: Another folder for the figures, or None.
        write_files: Writes further files into the folder of the run.

    Raises:
        OutputError: The other file or folder cannot be written.
    """
    if json is not None:
        write_json(json, results)
    if figures is not None:
        write_figures(figures)
    try:
        with folder.in_use(), folder.changes() as changes:
            write_json(changes.path / f"{name}.json", results)
            write_figures(make_folder(changes.path / "figures"))
            write_files(changes.path)
            write_report(content_of_folder(folder, changed=changes.path), changes.path / "report.html")
    except OutputError as error:
        print(f"note: not kept in the folder of the run: {error}", file=sys.stderr)
