"""p(N) with a weight of its own for every cell: no graph, but the interface of one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from models.graph.base import ScoreForm
from models.graph.table import TableGraph

__all__ = ["FreeGraph"]


class FreeGraph(TableGraph):
    """Free mixture weights: the tables of the complete graph in the order of the nodes, which hold any p(N).

    Its edges are how the tables are written down and no claim about nodes, so that they have no strength.

    Args:
        outcomes: Number of outcomes of each node, all >= 2.
    """

    def __init__(self, outcomes: Sequence[int]) -> None:
        super().__init__(outcomes, torch.ones(len(outcomes), len(outcomes), dtype=torch.bool).triu(1))

    def edge_strength(self) -> Tensor:
        """NaN, `[L, L]`: there is no such thing."""
        return torch.full_like(super().edge_strength(), torch.nan)

    def score_form(self) -> ScoreForm:
        """No scores and no weights."""
        form = super().score_form()
        return ScoreForm(torch.zeros_like(form.node_score), torch.zeros_like(form.edge_weight), 0.0)
