"""What every node tells of every known factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from inference.results.figures.heat_map import CELL, NAME_WIDTH, draw_heat_map, label_space, outline
from inference.results.figures.node_headings import NOT_IDENTIFIED, node_headings, unnamed_note
from inference.results.figures.style import Space, add_note, note_width, panels
from inference.results.text import format_number

__all__ = ["draw_node_factors"]

_TITLES = {
    "node_factor_nmi": "normalised mutual information",
    "node_factor_accuracy": "accuracy under the best matching",
}


def draw_node_factors(scores: Mapping[str, Any], identifiability: Mapping[str, Any] | None = None) -> Figure:
    """Two heat maps, node by factor: normalised mutual information and accuracy.

    Outlined is the node that is assigned to a factor, where its accuracy is nearer to 1 than to what random names are
    expected to reach for the factor.

    Args:
        scores: The entry `evaluation` of a summary.
        identifiability: The entry of that name: which nodes have a meaning.
    """
    nodes, assignment = scores["node_names"], scores["assignment"]
    factors = list(assignment)
    size = (CELL[0] * max(len(factors), 3), CELL[1] * len(nodes))
    rows = node_headings(nodes, identifiability, NAME_WIDTH)
    left = 1.7 if any(row.endswith(NOT_IDENTIFIED) for row in rows) else 0.9
    space = Space(left=left, below=0.1, above=0.3 + label_space(factors))
    figure, axes = panels(2, size=size, columns=2, space=space)
    for ax, (key, title) in zip(axes, _TITLES.items(), strict=True):
        table = np.array(scores[key])
        draw_heat_map(ax, table, rows, factors, [[f"{value:.2f}" for value in row] for row in table])
        ax.set_title(title, pad=8)
        for column, factor in enumerate(factors):
            if _tells(scores, factor):
                outline(ax, nodes.index(assignment[factor]), column)
    add_note(figure, *_note(scores), unnamed_note(identifiability), width=note_width(figure))
    return figure


def _tells(scores: Mapping[str, Any], factor: str) -> bool:
    """Whether the node of a factor tells more than chance; evaluations of earlier versions do not know."""
    chance = (scores["random_labelling_baseline"].get("node_accuracy") or {}).get(factor)
    has_node: bool = scores["assignment"][factor] is not None
    return has_node and chance is not None and scores["node_accuracy"][factor] > (1 + chance) / 2


def _note(scores: Mapping[str, Any]) -> list[str]:
    chance = scores["random_labelling_baseline"]
    mean, worst = (format_number(scores[f"node_accuracy_{which}"]) for which in ("mean", "worst"))
    at_random = (format_number(chance[which]) for which in ("mean", "worst"))
    return [
        "Outlined: the node that stands for the factor, each for one, where its accuracy is nearer to 1 than "
        "to that of the same clusters named at random.",
        f"Accuracy of the nodes that are assigned: mean {mean}, worst {worst}; of the same clusters named at random: "
        f"mean {next(at_random)}, worst {next(at_random)}.",
    ]
