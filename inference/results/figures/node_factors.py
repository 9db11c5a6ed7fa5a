"""What every node tells of every known factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from inference.results.figures.heat_map import CELL, draw_heat_map, label_space, outline
from inference.results.figures.style import Space, add_note, panels
from inference.results.text import format_number

__all__ = ["draw_node_factors"]

_TITLES = {
    "node_factor_nmi": "normalised mutual information",
    "node_factor_accuracy": "accuracy under the best matching",
}


def draw_node_factors(scores: Mapping[str, Any]) -> Figure:
    """Two heat maps, node by factor: normalised mutual information and accuracy.

    Args:
        scores: The entry `evaluation` of a summary.
    """
    nodes, assignment = scores["node_names"], scores["assignment"]
    factors = list(assignment)
    size = (CELL[0] * max(len(factors), 3), CELL[1] * len(nodes))
    space = Space(left=0.9, below=0.1, above=0.3 + label_space(factors))
    figure, axes = panels(2, size=size, columns=2, space=space)
    for ax, (key, title) in zip(axes, _TITLES.items(), strict=True):
        table = np.array(scores[key])
        draw_heat_map(ax, table, nodes, factors, [[f"{value:.2f}" for value in row] for row in table])
        ax.set_title(title, pad=8)
        for column, factor in enumerate(factors):
            if assignment[factor] is not None:
                outline(ax, nodes.index(assignment[factor]), column)
    add_note(figure, *_note(scores))
    return figure


def _note(scores: Mapping[str, Any]) -> list[str]:
    chance = scores["random_labelling_baseline"]
    mean, worst = (format_number(scores[f"node_accuracy_{which}"]) for which in ("mean", "worst"))
    at_random = (format_number(chance[which]) for which in ("mean", "worst"))
    return [
        "Outlined: the node that stands for the factor, each for one.",
        f"Accuracy of these: mean {mean}, worst {worst}; of the same clusters named at random: "
        f"mean {next(at_random)}, worst {next(at_random)}.",
    ]
