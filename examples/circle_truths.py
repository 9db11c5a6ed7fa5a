"""What is true of the circles: joint distributions of hue, radius and shift, and the graphs behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from causalpima.examples.discrete_network import DiscreteNetwork, binary_network

__all__ = ["LEVELS", "Truth", "check_truth", "circle_network", "data_name", "true_adjacency", "true_joint"]

Truth = Literal["independent", "chain", "fork", "collider", "edge"]

LEVELS: Mapping[str, tuple[str, str]] = {
    "hue": ("red", "blue"),
    "radius": ("small", "large"),
    "shift": ("left", "right"),
}
"""Names of the levels of each factor, in the order of the codes."""

_Tree = Mapping[str, tuple[tuple[str, ...], Any]]

# Per truth and factor: its parents and p(factor = 1 | parents), one axis per parent.
_TREES: Mapping[str, _Tree] = {
    "independent": {"hue": ((), 0.5), "radius": ((), 0.4), "shift": ((), 0.3)},
    "chain": {"hue": ((), 0.5), "radius": (("hue",), [0.3, 0.75]), "shift": (("radius",), [0.2, 0.7])},
    "fork": {"hue": (("radius",), [0.35, 0.8]), "radius": ((), 0.45), "shift": (("radius",), [0.75, 0.3])},
    "collider": {
        "hue": ((), 0.5),
        "radius": ((), 0.4),
        "shift": (("hue", "radius"), [[0.15, 0.5], [0.4, 0.85]]),
    },
    "edge": {"hue": ((), 0.6), "radius": (("hue",), [0.25, 0.7]), "shift": ((), 0.35)},
}
# The same graphs; two cells have 3 % of the samples, no cell has fewer.
_RARE_TREES: Mapping[str, _Tree] = {
    "independent": {"hue": ((), 0.5), "radius": ((), 0.3), "shift": ((), 0.2)},
    "chain": {"hue": ((), 0.5), "radius": (("hue",), [0.2, 0.8]), "shift": (("radius",), [0.7, 0.3])},
    "fork": {"hue": (("radius",), [0.8, 0.3]), "radius": ((), 0.5), "shift": (("radius",), [0.7, 0.2])},
    "collider": {
        "hue": ((), 0.5),
        "radius": ((), 0.4),
        "shift": (("hue", "radius"), [[0.1, 0.5], [0.4, 0.85]]),
    },
    "edge": {"hue": ((), 0.5), "radius": (("hue",), [0.2, 0.8]), "shift": ((), 0.3)},
}


def circle_network(truth: Truth = "independent", rare: bool = False) -> DiscreteNetwork:
    """p(hue, radius branch, shift branch) with its graph; `independent` is the tree of the paper.

    Args:
        truth: Which edges there are: none, hue → radius → shift (`chain`), hue ← radius → shift (`fork`),
            hue → shift ← radius (`collider`), or hue → radius alone (`edge`).
        rare: The same graph with tables under which two of the eight cells have 3 % of the samples each.
    """
    return binary_network(LEVELS, (_RARE_TREES if rare else _TREES)[truth])


def true_joint(truth: Truth = "independent", rare: bool = False) -> np.ndarray:
    """p(hue, radius branch, shift branch) of a truth, `[2, 2, 2]`; see `circle_network`."""
    return circle_network(truth, rare).joint


def true_adjacency(truth: Truth = "independent") -> np.ndarray:
    """The DAG of a truth over hue, radius and shift: `[3, 3]` of 0 and 1, row = cause, column = effect."""
    return circle_network(truth).adjacency


def data_name(base: str, truth: Truth, rare: bool = False) -> str:
    """Name of a data set with this truth, for example `circles_chain_rare`."""
    return base + ("" if truth == "independent" else f"_{truth}") + ("_rare" if rare else "")


def check_truth(truth: str) -> None:
    """Refuse what is no truth.

    Raises:
        ValueError: If it is none of `Truth`.
    """
    if truth not in get_args(Truth):
        raise ValueError(f"truth: expected one of {', '.join(get_args(Truth))}, got {truth!r}; choose one of these")
