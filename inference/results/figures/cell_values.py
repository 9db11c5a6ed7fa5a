"""One value per cell, drawn as its modality asks: the measured sample nearest to each cell, or its decoded mean."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from inference.results.arrays import FitArrays, ModalityArrays
from inference.results.figures.cell_curves import draw_curves
from inference.results.figures.cell_images import draw_images
from inference.results.figures.cell_scalars import draw_scalars
from inference.results.figures.cell_vectors import draw_vectors
from inference.results.figures.cells import Cells
from inference.results.figures.curve_axes import decoded_where_measured
from inference.results.figures.style import add_heading, add_note
from inference.results.text import shorten

__all__ = ["draw_decoded_means", "draw_nearest_samples"]

_MEANING = {
    "bernoulli": "Decoded values are probabilities.",
    "categorical": "Decoded values are the codes of the most probable categories.",
}


def draw_nearest_samples(fit: FitArrays, name: str, cells: Cells) -> Figure:
    """The measured sample nearest to the mean of each cell."""
    modality = fit.modalities[name]
    return _draw(fit, name, modality.exemplars, cells, "measured sample nearest to the mean of each cell")


def draw_decoded_means(fit: FitArrays, name: str, cells: Cells) -> Figure:
    """What the decoder makes of the mean of each cell; a curve where samples of the cell were measured."""
    modality = fit.modalities[name]
    values, note = modality.decoded, _meaning(modality)
    if modality.curves is not None:
        values = decoded_where_measured(modality)
        if np.isnan(values).any():
            note = f"{note} Curves end where none of the cell was measured.".strip()
    return _draw(fit, name, values, cells, "decoded mean of each cell", note)


def _meaning(modality: ModalityArrays) -> str:
    if modality.transform != "identity":
        return f"Means were taken on the {modality.transform} scale; there, noise is even."
    return _MEANING.get(modality.likelihood, "")


def _draw(fit: FitArrays, name: str, values: np.ndarray, cells: Cells, what: str, meaning: str = "") -> Figure:
    modality: ModalityArrays = fit.modalities[name]
    figure, note = _panels(name, modality, values, cells)
    add_heading(figure, f"{shorten(name, 40)}: {what}\ncells by {cells.nodes}")
    add_note(figure, note, meaning, cells.note, _presence(fit, name))
    return figure


def _panels(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """The figure, and what must be said of it."""
    if modality.kind == "image":
        return draw_images(modality, values, cells)
    if modality.kind == "curve":
        return draw_curves(name, modality, values, cells)
    draw = draw_scalars if values[0].size == 1 else draw_vectors
    return draw(name, modality, values, cells)


def _presence(fit: FitArrays, name: str) -> str:
    present = fit.present[name]
    return "" if present.all() else f"Measured in {int(present.sum())} of {len(present)} samples."
