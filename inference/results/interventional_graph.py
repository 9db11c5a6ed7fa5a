"""The graph that interventions told, with no more directions than they told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["interventional_graph"]

_SURE = 0.95


def interventional_graph(details: Mapping[str, Any]) -> np.ndarray:
    """The best graph, bool `[L, L]`, 1 both ways where the interventions leave the direction of an edge open.

    An edge has the direction of the best graph where graphs with the edge that way round have at least 95 % of the
    weight of those that have it.

    Args:
        details: Of the labelling, as a summary has them: `graph`, and `edge_probability` where graphs were weighed.
    """
    directed = np.array(details["graph"], dtype=bool)
    weight = np.array(details.get("edge_probability", directed), dtype=float)
    is_open = directed & (weight < _SURE * (weight + weight.T))
    both: np.ndarray = directed | is_open.T
    return both
