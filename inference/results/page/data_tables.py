"""Tables of what was measured and how it was modelled, and of the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inference.results.page.content import RunContent
from inference.results.page.parts import Table
from inference.results.physics_table import estimate_text, interval_text, parameter_headings, physics_by_cell
from inference.results.text import cell_names, format_number, printable

__all__ = ["cell_table", "decoder_table", "modality_table", "physics_tables"]

Summary = Mapping[str, Any]

_NAME_WIDTH = 40


def modality_table(summary: Summary) -> Table:
    """What was measured."""
    head = ("modality", "shape", "unit", "positions", "scale", "samples", "elements missing")
    rows = [[printable(name), *_measured(modality)] for name, modality in summary["modalities"].items()]
    text = f"Measured on {summary['n_samples']} samples. Elements are counted where a sample has the modality."
    return Table(text, head, rows)


def _measured(modality: Summary) -> list[str]:
    axis, transform = modality.get("axis") or {}, modality.get("transform", "identity")
    return [
        " × ".join(map(str, modality["shape"])),
        printable(modality.get("unit") or "-"),
        printable(f"{axis.get('name', '-')} {axis.get('unit', '')}"),
        "as measured" if transform == "identity" else printable(transform),
        str(modality["present"]),
        f"{100 * (modality.get('missing_elements') or 0.0):.3g} %",
    ]


def physics_tables(content: RunContent) -> list[Table]:
    """A table per modality with a law: cells in rows, `value ± standard error [interval]` per parameter."""
    names = cell_names(content.outcome_names, _NAME_WIDTH)
    return [
        _law(printable(name), cells, names)
        for name, modality in content.summary["modalities"].items()
        if (cells := physics_by_cell(modality))
    ]


def _law(name: str, cells: Mapping[str, Mapping[str, Summary]], names: Sequence[str]) -> Table:
    parameters = [f"{p} ({unit})" if unit else p for p, unit in parameter_headings(cells)]
    rows = [[cell, *_parameters(entries)] for cell, entries in zip(names, cells.values(), strict=True)]
    return Table(f"{name}: value ± standard error [95 % interval].", ("cell", "independent samples", *parameters), rows)


def _parameters(entries: Mapping[str, Summary]) -> list[str]:
    samples = next(iter(entries.values()))["effective_samples"]
    return [format_number(samples, 1), *(f"{estimate_text(entry)}{interval_text(entry)}" for entry in entries.values())]


def cell_table(content: RunContent) -> Table:
    """Size, weight and certainty of each cell."""
    head = (f"({', '.join(content.summary['nodes'])})", "samples", "share", "p(N)", "certainty")
    text = (
        "Samples count for their most probable cell. Share is the mean of q(N|X) over all samples, certainty its mean "
        "over the samples of the cell; p(N) is what the graph says."
    )
    names = cell_names(content.outcome_names, _NAME_WIDTH)
    prior = np.exp(content.log_joint.reshape(-1))
    best = content.responsibilities.argmax(axis=1)
    rows = [
        [name, *_cell(content.responsibilities[:, cell], float(prior[cell]), best == cell)]
        for cell, name in enumerate(names)
    ]
    return Table(text, head, rows)


def _cell(r: np.ndarray, prior: float, members: np.ndarray) -> list[str]:
    certainty = float(r[members].mean()) if members.any() else None
    return [str(members.sum()), *map(format_number, (float(r.mean()), prior, certainty))]


def decoder_table(summary: Summary) -> Table:
    """Likelihoods, and variances of Gaussian decoders."""
    head = ("modality", "likelihood", "variance while training", "variance reported")
    rows = [
        [printable(name), printable(modality.get("likelihood", "normal")), *_variances(modality)]
        for name, modality in summary["modalities"].items()
    ]
    text = (
        "Likelihoods and the variance of Gaussian decoders, in squared units of the data, or on the logarithmic or "
        "asinh scale where there is one. A dash: the likelihood has no such variance."
    )
    return Table(text, head, rows)


def _variances(modality: Summary) -> list[str]:
    found = modality.get("decoder_variance") or {}
    return ["-" if found.get(key) is None else f"{found[key]:.4g}" for key in ("training", "reported")]
