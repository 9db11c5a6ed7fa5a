"""Free weights of cells in the interface of a graph."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from causalpima.models.graph.table import FreeGraph


@settings(max_examples=10)
@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.integers(0, 1000))
def test_the_fit_has_the_shares_of_the_cells(outcomes: list[int], seed: int) -> None:
    """Without pseudo-counts p(c) = n_c / n, the maximum over all p(N), whatever the order of the nodes."""
    graph = FreeGraph(outcomes)
    count = torch.rand(graph.n_cells, generator=torch.Generator().manual_seed(seed)) + 0.1
    graph.fit(count, pseudo_count=1e-12)
    torch.testing.assert_close(graph.log_joint().reshape(-1).exp(), count / count.sum())


def test_its_edges_have_no_strength_and_no_scores() -> None:
    graph = FreeGraph((2, 3))
    assert bool(graph.edge_strength().isnan().all())
    form = graph.score_form()
    assert not form.node_score.any()
    assert not form.edge_weight.any()
    assert graph.causal_order() == [0, 1]
