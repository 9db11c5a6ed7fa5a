"""The physical parameters of a fit, with their uncertainty."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from causalpima.inference.data.tensors import TensorData, weighted_means
from causalpima.inference.findings.arrays import PhysicsArrays
from causalpima.inference.store.text import is_number, printable, shorten
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.uncertainty import EstimateAccumulator

if TYPE_CHECKING:
    from causalpima.inference.findings.collect import Fitted

__all__ = [
    "estimate_text",
    "format_estimate",
    "interval_text",
    "parameter_headings",
    "physical_estimates",
    "physics_by_cell",
    "physics_lines",
]


_PASS_SIZE = 2048


@torch.no_grad()
def physical_estimates(fitted: Fitted, name: str, r: np.ndarray) -> PhysicsArrays | None:
    """Parameters of the law of each cell over the training samples; None for decoders without such parameters.

    Least squares of the law on the samples of each cell, weighted by q(N|X), with sandwich intervals. With a table per
    cell (`source` cell) that is what the decoder itself holds. Where its parameters depend on Z, it is fitted here, for
    what is reported alone: the outputs of a network hardly differ within a cell, whatever the data do, so that their
    spread would be no uncertainty. Under a mask, cells that the modality does not tell apart share their samples, and
    have the same parameters.

    Args:
        fitted: The fit.
        name: The modality.
        r: q(N|X) of all samples, `[n, C]`.
    """
    decoder = fitted.model.decoders[name]
    if not isinstance(decoder, PhysicsDecoder):
        return None
    training = np.flatnonzero(fitted.split == "train")
    data, mixture = fitted.tensors.subset(training), fitted.model.mixture
    share = mixture.sum_to_levels(name, torch.from_numpy(r[training]).to(data.device)).cpu()
    if decoder.source != "cell":
        decoder = decoder.with_table(share.shape[1])
        decoder.update_cells(*weighted_means(data, name, share.to(data.device)))
    groups = None if fitted.data.groups is None else fitted.data.groups[training]
    level = mixture.level(name, torch.arange(mixture.n_cells, device=data.device)).cpu().numpy()
    return _of_cells(_estimates(decoder, name, data, share, groups), level)


def _of_cells(found: PhysicsArrays, level: np.ndarray) -> PhysicsArrays:
    """Per cell what was found per level."""
    per_level = {field: value for field, value in vars(found).items() if isinstance(value, np.ndarray)}
    return dataclasses.replace(found, **{field: value[level] for field, value in per_level.items()})


def _estimates(
    decoder: PhysicsDecoder, name: str, data: TensorData, share: Tensor, groups: np.ndarray | None
) -> PhysicsArrays:
    sums = EstimateAccumulator(decoder)
    for batch in data.batches(_PASS_SIZE):
        index, present, observed = batch.index.cpu(), batch.present[name], batch.observed.get(name)
        weight = share[index].double()
        sums.add(
            batch.values[name].cpu().double(),
            None if observed is None else observed.cpu(),
            weight if present is None else weight * present.cpu()[:, None],
            None if groups is None else groups[index.numpy()],
        )
    found = sums.estimate()
    return PhysicsArrays(**{field: getattr(found, field) for field in PhysicsArrays.__dataclass_fields__})


# The physical parameters of a summary as words: values with their standard errors, cells in rows.


_Entry = Mapping[str, Any]
_SHORT = {"too few samples": "too few"}
_PLAIN_POWER = 6
_MOST_DECIMALS = 9


def physics_by_cell(modality: Mapping[str, Any]) -> Mapping[str, Mapping[str, _Entry]]:
    """The entries of a modality of the summary, by cell and parameter; empty without a law per cell."""
    return modality.get("physics") or {}


def parameter_headings(cells: Mapping[str, Mapping[str, _Entry]]) -> list[tuple[str, str]]:
    """Name and unit of each parameter."""
    return [
        (printable(name), printable(entry.get("unit", ""))) for name, entry in next(iter(cells.values()), {}).items()
    ]


def estimate_text(entry: Mapping[str, Any]) -> str:
    """`2.130 ± 0.040`; without a standard error the value and why there is none."""
    value: Any = entry.get("value")
    error: Any = entry.get("standard_error")
    if not is_number(value):
        return "-"
    if is_number(error):
        return format_estimate(value, error)
    status = printable(entry.get("status", ""))
    return f"{value:.3g} ({_SHORT.get(status, status)})"


def format_estimate(value: float, error: float) -> str:
    """Value and standard error to the second digit of the error, in powers of ten where numbers get long.

    >>> format_estimate(2.1304, 0.0415), format_estimate(71234.0, 1234.0), format_estimate(2.5e-7, 3e-9)
    ('2.130 ± 0.042', '71200 ± 1200', '(2.500 ± 0.030)e-07')
    """
    largest = max(abs(value), error)
    power = math.floor(math.log10(largest)) if largest > 0 else 0
    if not -4 <= power < _PLAIN_POWER:
        scale = 10.0**power
        return f"({_plain(value / scale, error / scale)})e{power:+03d}"
    return _plain(value, error)


def interval_text(entry: _Entry) -> str:
    """The interval in brackets after a space; empty where there is none."""
    lower, upper = entry.get("lower"), entry.get("upper")
    return f" [{lower:.4g}, {upper:.4g}]" if is_number(lower) and is_number(upper) else ""


def _plain(value: float, error: float) -> str:
    # Of the rounded error: 0.0996 is 0.10.
    decimals = 1 - math.floor(math.log10(float(f"{error:.1e}"))) if error > 0 else 3
    decimals = min(decimals, _MOST_DECIMALS)
    shown = [f"{round(number, decimals):.{max(decimals, 0)}f}" for number in (value, error)]
    return " ± ".join(shown)


# Physical parameters on the terminal: cells in rows, as many parameters side by side as fit.


_MOST_ROWS = 12
_MOST_LINES = 30
_NAME_WIDTH = 16
_HEADING_WIDTH = 18
_GAP = 2


def physics_lines(summary: Mapping[str, Any], width: int) -> list[str]:
    """The fitted parameters of every modality with a law, value ± standard error; empty where there are none.

    At most 12 cells and about 30 lines per modality; what is left out is said, and stands in summary.json.

    Args:
        summary: The summary of a run.
        width: Most characters of a line.
    """
    return [
        line
        for name, modality in summary.get("modalities", {}).items()
        if physics_by_cell(modality)
        for line in _of_modality(name, physics_by_cell(modality), _sizes(summary), width)
    ]


def _sizes(summary: Mapping[str, Any]) -> Sequence[int]:
    sizes: Sequence[int] = summary.get("clusters", {}).get("sizes", ())
    return sizes


def _of_modality(name: str, cells: Mapping[str, Any], sizes: Sequence[int], width: int) -> list[str]:
    filled = [cell for i, cell in enumerate(cells) if i >= len(sizes) or sizes[i] > 0]
    rows = filled[:_MOST_ROWS]
    columns = _columns(cells, rows)
    names = ["", "", *(shorten(cell, _NAME_WIDTH) for cell in rows)]
    first = max(map(len, names))
    blocks = _blocks([len(column[0]) + _GAP for column in columns], width - first)
    n_shown = max(1, _MOST_LINES // len(names))
    lines = [
        f"{names[i]:<{first}}" + "".join(" " * _GAP + columns[j][i] for j in block)
        for block in blocks[:n_shown]
        for i in range(len(names))
    ]
    hidden = _hidden(len(filled) - len(rows), sum(map(len, blocks[n_shown:])))
    head = f"{shorten(name, 30)}: estimate ± standard error, given the clusters"
    return [head, *(line.rstrip() for line in lines if line.strip()), *hidden]


def _columns(cells: Mapping[str, Any], rows: Sequence[str]) -> list[list[str]]:
    """A column per parameter: name, unit, one text per cell, all right-aligned to one width."""
    columns = []
    for heading, parameter in zip(parameter_headings(cells), next(iter(cells.values())), strict=True):
        texts = [shorten(text, _HEADING_WIDTH) for text in heading]
        texts += [estimate_text(cells[cell][parameter]) for cell in rows]
        columns.append([f"{text:>{max(map(len, texts))}}" for text in texts])
    return columns


def _blocks(widths: Sequence[int], room: int) -> list[range]:
    """Consecutive columns, each block at most `room` wide; at least one column a block."""
    blocks, start, used = [], 0, 0
    for i, width in enumerate(widths):
        if i > start and used + width > room:
            blocks.append(range(start, i))
            start, used = i, 0
        used += width
    return [*blocks, range(start, len(widths))]


def _hidden(n_cells: int, n_parameters: int) -> list[str]:
    counts = ((n_cells, "cells"), (n_parameters, "parameters"))
    parts = [f"{count} more {what}" for count, what in counts if count]
    return [f"{' and '.join(parts)} in summary.json"] if parts else []
