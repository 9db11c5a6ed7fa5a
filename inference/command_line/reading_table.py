"""What was read from a file, and what was chosen for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.command_line.modality_flags import flag_names
from inference.data.multimodal import MultimodalData
from inference.data.stored import StoredArray
from inference.training.config import ModalityConfig
from inference.training.run import Run

__all__ = ["reading_table"]

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
        f"change with --modality.{next(iter(words.values()))}.encoder.kind and the like (--help lists them), or with "
        "--kinds NAME=curve"
    )
    return [line, *([f"in flags, {', '.join(renamed)}"] if renamed else [])]
