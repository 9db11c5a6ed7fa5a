"""Figures of a fit, after those of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.drawing import figure_style, file_names, outcome_files, save_figure
from causalpima.inference.reporting.figures.cells import (
    cells_of,
    draw_cell_fits,
    draw_decoded_means,
    draw_nearest_samples,
)
from causalpima.inference.reporting.figures.designed import draw_designed
from causalpima.inference.reporting.figures.fit import (
    draw_missing,
    draw_objective,
    draw_reliability,
    draw_restart_agreement,
)
from causalpima.inference.reporting.figures.graph import draw_conditionals, draw_graph
from causalpima.inference.reporting.figures.latent import draw_latent_clusters, draw_latent_factors, view_latent
from causalpima.inference.reporting.figures.nodes import draw_explained, draw_node_factors, draw_outcomes
from causalpima.inference.store.files import make_folder

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.figure import Figure

__all__ = [
    "write_figures",
    "write_score_figures",
]


def write_figures(
    fit: FitArrays,
    folder: str | Path,
    *,
    summary: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write every figure that the fit has data for, as PNG.

    Args:
        fit: The fit.
        folder: Where the files go; made where it does not exist.
        summary: Its summary, with the class of graphs and the scores; without it, there is no graph.

    Returns:
        The files, in the order in which a reader meets them.

    Raises:
        OutputError: The disk is full, or the folder can't be written to.
    """
    folder = Path(folder)
    make_folder(folder)
    with figure_style():
        return [
            save_figure(figure, folder / f"{name}.png")
            for name, figure in chain(
                _figures(fit, summary), _score_figures((summary or {}).get("evaluation"), fit.identifiability)
            )
            if figure is not None
        ]


def _figures(fit: FitArrays, summary: Mapping[str, Any] | None) -> Iterator[tuple[str, Figure | None]]:
    view, cells = view_latent(fit.latent_loc), cells_of(fit)
    yield "missing", _draw_missing(fit)
    yield "latent_clusters", draw_latent_clusters(fit, view, cells)
    yield "latent_factors", draw_latent_factors(fit, view)
    if fit.restarts is not None:
        yield "restart_agreement", draw_restart_agreement(fit.restarts)
    for name, file in file_names(fit.modalities).items():
        yield f"nearest_samples_{file}", draw_nearest_samples(fit, name, cells)
        yield f"decoded_means_{file}", draw_decoded_means(fit, name, cells)
        yield f"curves_{file}", draw_cell_fits(fit, name, cells)
    yield from _outcomes(fit)
    yield from _designed(fit)
    yield "variance_explained", draw_explained(fit)
    yield "graph", None if summary is None else draw_graph(summary)
    yield "conditionals", draw_conditionals(fit)
    yield "objective", draw_objective(fit)


def _outcomes(fit: FitArrays) -> Iterator[tuple[str, Figure]]:
    """What distinguishes the outcomes of every node in every modality."""
    files = outcome_files(fit.graph.node_names, fit.modalities)
    for name in fit.modalities:
        yield from ((f"outcomes_{files[node, name]}", figure) for node, figure in draw_outcomes(fit, name))


def _designed(fit: FitArrays) -> Iterator[tuple[str, Figure | None]]:
    """What the experimenter set, and what it does to every modality."""
    files = outcome_files(fit.graph.node_names, fit.modalities)
    for node in fit.designed:
        yield from ((f"designed_{files[node, name]}", draw_designed(fit, node, name)) for name in fit.modalities)


def write_score_figures(
    scores: Mapping[str, Any], folder: str | Path, identifiability: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write the figures of the scores against known factors, as PNG; none where nothing is known.

    Args:
        scores: The entry `evaluation` of a summary.
        folder: Where the files go; made where it does not exist.
        identifiability: The entry of that name: which nodes have a meaning.

    Raises:
        OutputError: The disk is full, or the folder can't be written to.
    """
    folder = Path(folder)
    make_folder(folder)
    with figure_style():
        known = scores if "cluster_accuracy" in scores else None
        return [save_figure(figure, folder / f"{name}.png") for name, figure in _score_figures(known, identifiability)]


def _score_figures(
    scores: Mapping[str, Any] | None, identifiability: Mapping[str, Any] | None
) -> Iterator[tuple[str, Figure]]:
    """Figures of the scores against known factors, by the name of the file; none without scores."""
    if scores is not None:
        yield "node_factors", draw_node_factors(scores, identifiability)
        yield "reliability", draw_reliability(scores)


def _draw_missing(fit: FitArrays) -> Figure | None:
    """What is missing where; None where nothing is."""
    shares = [fit.measured_share.get(name, present) for name, present in fit.present.items()]
    if all((share == 1).all() for share in shares):
        return None
    names = None if fit.sample_names is None else fit.sample_names.tolist()
    return draw_missing(list(fit.present), np.stack(shares, axis=1), names)
