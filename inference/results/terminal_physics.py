"""Physical parameters on the terminal: cells in rows, as many parameters side by side as fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.results.physics_table import estimate_text, parameter_headings, physics_by_cell
from inference.results.text import shorten

__all__ = ["physics_lines"]

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
