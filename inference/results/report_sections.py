"""What the report says in words and tables, section by section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from inference.results.arrays import FitArrays
from inference.results.class_findings import Signs, class_sentence
from inference.results.environment_findings import environments_sentence
from inference.results.findings import (
    clarity_sentence,
    cluster_sentence,
    held_out_sentence,
    objective_sentence,
    score_notes,
    scored_samples,
    scores,
)
from inference.results.graph_findings import edge_texts, edges_heading, edges_remark
from inference.results.meaning import meaning_sentence
from inference.results.physics_table import estimate_text, interval_text, parameter_headings, physics_by_cell
from inference.results.restart_findings import restart_rows, restart_sentences, restart_warnings
from inference.results.text import cell_names, format_number

__all__ = ["Section", "Table", "sections_of"]

_NAME_WIDTH = 40
_SIGNS = Signs("→", "←", "—")


class Table(NamedTuple):
    """A table; the first column holds names, the others numbers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Section(NamedTuple):
    """A section of the page; figures find it by `id`."""

    id: str
    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()


def sections_of(fit: FitArrays, summary: Mapping[str, Any]) -> list[Section]:
    """All sections in reading order; those without words or tables are there for their figures."""
    return [
        Section(
            "data", "Data", [text for text in (environments_sentence(summary),) if text], tables=[_modalities(fit)]
        ),
        Section(
            "clusters",
            "Clusters",
            _cluster_sentences(summary),
            [_cells(fit)],
        ),
        Section("restarts", "Restarts", _restart_sentences(summary), _restarts(summary)),
        Section("scores", "Scores against known factors", tables=_scores(summary)),
        Section("physics", "Physical parameters", _physics_sentences(fit), _physics(fit, summary)),
        Section("appearance", "What the clusters look like"),
        Section("meaning", "What the nodes mean", _meaning_sentences(summary)),
        Section("graph", "Graph", _graph_sentences(summary), [*_directed(summary), _strengths(fit)]),
        Section("fit", "Course of the fit", _fit_sentences(summary), [_decoders(fit)]),
        Section("other", "Further figures"),
    ]


def _modalities(fit: FitArrays) -> Table:
    head = ("modality", "shape", "unit", "positions", "scale", "samples", "elements missing")
    rows = [
        [
            name,
            " × ".join(map(str, modality.decoded.shape[1:])),
            modality.unit or "-",
            "-" if modality.axis is None else f"{modality.axis.name} {modality.axis.unit}".strip(),
            "as measured" if modality.transform == "identity" else modality.transform,
            str(int(fit.present[name].sum())),
            f"{100 * modality.missing_elements:.3g} %",
        ]
        for name, modality in fit.modalities.items()
    ]
    text = f"Measured on {len(fit.responsibilities)} samples. Elements are counted where a sample has the modality."
    return Table(text, head, rows)


def _physics_sentences(fit: FitArrays) -> list[str]:
    if all(modality.physics is None for modality in fit.modalities.values()):
        return []
    return [
        "Least squares of the law on the training samples of each cell, weighted by q(N|X). Standard errors and 95 % "
        "intervals take the clusters as given: where clusters overlap, they are too small."
    ]


def _physics(fit: FitArrays, summary: Mapping[str, Any]) -> list[Table]:
    """A table per modality with a law: cells in rows, `value ± standard error [interval]` per parameter."""
    names = cell_names(fit.graph.outcome_names, _NAME_WIDTH)
    tables = []
    for name, modality in summary["modalities"].items():
        cells = physics_by_cell(modality)
        if cells:
            head = [
                "cell",
                "independent samples",
                *(f"{p} ({unit})" if unit else p for p, unit in parameter_headings(cells)),
            ]
            rows = [[cell, *_physics_row(entries)] for cell, entries in zip(names, cells.values(), strict=True)]
            tables.append(Table(f"{name}: value ± standard error [95 % interval].", head, rows))
    return tables


def _physics_row(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    samples = next(iter(entries.values()))["effective_samples"]
    return [format_number(samples, 1), *(f"{estimate_text(entry)}{interval_text(entry)}" for entry in entries.values())]


def _cells(fit: FitArrays) -> Table:
    """Size, weight and certainty of each cell."""
    head = (f"({', '.join(fit.graph.node_names)})", "samples", "share", "p(N)", "certainty")
    text = (
        "Samples count for their most probable cell. Share is the mean of q(N|X) over all samples, certainty its mean "
        "over the samples of the cell; p(N) is what the graph says."
    )
    names = cell_names(fit.graph.outcome_names, _NAME_WIDTH)
    best = fit.responsibilities.argmax(axis=1)
    return Table(text, head, [_cell(fit, cell, name, best == cell) for cell, name in enumerate(names)])


def _cell(fit: FitArrays, cell: int, name: str, members: np.ndarray) -> list[str]:
    r = fit.responsibilities[:, cell]
    certainty = float(r[members].mean()) if members.any() else None
    prior = float(np.exp(fit.graph.log_joint.reshape(-1)[cell]))
    return [name, str(members.sum()), *map(format_number, (float(r.mean()), prior, certainty))]


def _restart_sentences(summary: Mapping[str, Any]) -> list[str]:
    return [*(f"Warning: {text}" for text in restart_warnings(summary)), *restart_sentences(summary)]


def _restarts(summary: Mapping[str, Any]) -> list[Table]:
    rows = restart_rows(summary)
    if not rows:
        return []
    text = (
        "Starts of the same fit, the clearest first. Entropy: mean of q(N|X), in nats, by which the start is chosen "
        "among those with the most cells that have mass (above 0.5 %); the bound does not tell good clusters from bad. "
        "ARI: adjusted Rand index with the kept one."
    )
    return [Table(text, ("start", "status", "entropy", "cells", "ARI", "cluster accuracy"), rows)]


def _scores(summary: Mapping[str, Any]) -> list[Table]:
    found = scores(summary)
    if not found:
        return []
    text = (
        f"On {scored_samples(summary)}. Random names: the same clusters, their outcomes named at random (not chance "
        "level: the clusters stay as they were found). Bayes ceiling: what the best classifier reaches. A dash: not "
        f"known, or without meaning. {' '.join(score_notes(summary))}"
    )
    head = ("score", "this fit", "random names", "Bayes ceiling")
    rows = [[score.name, *score.texts()] for score in found]
    return [Table(text, head, rows)]


def _graph_sentences(summary: Mapping[str, Any]) -> list[str]:
    if len(summary["graph"]["node_names"]) == 1:
        return ["One node has no edges."]
    found, heading = edge_texts(summary, _NAME_WIDTH, _SIGNS), edges_heading(summary, _SIGNS)
    listed = f"{heading or 'Strengths above 0.5, with mutual information'}: {', '.join(found)}." if found else ""
    sentences = (class_sentence(summary, _SIGNS), listed, edges_remark(summary))
    return [f"{sentence[0].upper()}{sentence[1:].rstrip('.')}." for sentence in sentences if sentence]


def _cluster_sentences(summary: Mapping[str, Any]) -> list[str]:
    """Warnings are of a single start; several have a section of their own."""
    warning = "" if summary.get("restarts") else clarity_sentence(summary)
    return [cluster_sentence(summary) + ".", *([f"Warning: {warning}"] if warning else [])]


def _meaning_sentences(summary: Mapping[str, Any]) -> list[str]:
    text = meaning_sentence(summary)
    return [text] if text else []


def _strengths(fit: FitArrays) -> Table:
    names = fit.graph.node_names
    rows = [
        [name, *("" if i == j else format_number(float(strength), 2) for j, strength in enumerate(row))]
        for i, (name, row) in enumerate(zip(names, fit.graph.edge_strength, strict=True))
    ]
    text = (
        f"Details: soft strengths of the trained model at temperature {fit.graph.temperature:.3g}. Row: from. Column: "
        "to. No direction is evidence: these are no test of an edge."
    )
    return Table(text, ("from / to", *names), rows)


def _directed(summary: Mapping[str, Any]) -> list[Table]:
    """Weights of the edges of the graphs that interventions tell apart; empty without environments."""
    details = summary.get("labelling", {}).get("details", {})
    if "edge_probability" not in details:
        return []
    names = summary["graph"]["node_names"]
    rows = [
        [name, *("" if i == j else format_number(weight, 2) for j, weight in enumerate(row))]
        for i, (name, row) in enumerate(zip(names, details["edge_probability"], strict=True))
    ]
    text = (
        "What the interventions say of every edge: weight of the graphs that have it, by BIC, under this labelling of "
        "the clusters. Row: cause. Column: effect."
    )
    return [Table(text, ("cause", *names), rows)]


def _fit_sentences(summary: Mapping[str, Any]) -> list[str]:
    sentences = (f"Objective: {objective_sentence(summary)}.", held_out_sentence(summary))
    return [sentence for sentence in sentences if sentence]


def _decoders(fit: FitArrays) -> Table:
    head = ("modality", "likelihood", "variance while training", "variance reported")
    rows = [
        [
            name,
            modality.likelihood,
            *("-" if value is None else f"{value:.4g}" for value in (modality.variance_training, modality.variance)),
        ]
        for name, modality in fit.modalities.items()
    ]
    text = (
        "Likelihoods and the variance of Gaussian decoders, in squared units of the data, or on the logarithmic or "
        "asinh scale where there is one. A dash: the likelihood has no such variance."
    )
    return Table(text, head, rows)
