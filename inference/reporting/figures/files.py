"""Figures of a fit, after those of the paper, as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.drawing import figure_style, save_figure
from causalpima.inference.reporting.findings import FINDINGS, score_figures
from causalpima.inference.store.files import make_folder

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
            for finding in FINDINGS
            for name, figure in finding.figures(fit, summary)
            if figure is not None
        ]


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
        return [save_figure(figure, folder / f"{name}.png") for name, figure in score_figures(known, identifiability)]
