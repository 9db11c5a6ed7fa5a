"""A hard graph whose conditional tables have a closed form."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from causalpima.models.graph.base import NodeGraph, ScoreForm, conditional_table, depth_of_nodes

__all__ = [
    "FreeGraph",
    "TableGraph",
]


class TableGraph(NodeGraph):
    r"""A given directed acyclic graph with a table $\theta(c_\ell \mid c_{pa(\ell)})$ per node; nothing has a gradient.

    For a fixed hard graph, what gradients would approach has a closed form (docs/errata.md, item 23). The tables that
    maximise $\sum_c n_c \log p(c) + a \sum \log \theta$, the sums over cells c and over all entries of all tables, are

    $$\theta(c_\ell \mid c_{pa}) = \frac{n(c_\ell, c_{pa}) + a}{n(c_{pa}) + C_\ell\, a}.$$

    The second term is the declared log-prior: a Dirichlet(1 + a) distribution on every row, up to its constant.

    Buffers: `edges`, bool `[L, L]`, row = cause, column = effect; `log_tables` $\log\theta$ `[L, C_1, ..., C_L]`,
    constant along the axes of nodes that are no parents; uniform at first.

    Args:
        outcomes: Number of outcomes of each node, all >= 2.
        edges: `[L, L]` of 0 and 1, without cycles; None: no edge.

    Raises:
        ValueError: No node, a node with fewer than two outcomes, or a graph of another size or with a cycle.
    """

    edges: Tensor
    log_tables: Tensor

    def __init__(self, outcomes: Sequence[int], edges: Tensor | None = None) -> None:
        super().__init__(outcomes)
        n = len(self.outcomes)
        self.register_buffer("edges", torch.zeros(n, n, dtype=torch.bool))
        self.register_buffer("log_tables", torch.zeros(n, *self.outcomes))
        if edges is not None:
            self.set_edges(edges)
        uniform = -torch.tensor([float(size) for size in self.outcomes]).log()
        self.log_tables += uniform.reshape(n, *[1] * n)

    def edge_strength(self) -> Tensor:
        """The adjacency, `[L, L]` of 0 and 1, of the type of the tables."""
        return self.edges.to(self.log_tables)

    def conditional_log_tables(self) -> Tensor:
        """log p(N_l | parents), `[L, C_1, ..., C_L]`."""
        return self.log_tables

    def sample_log_tables(self) -> Tensor:
        """`conditional_log_tables`: nothing is random."""
        return self.conditional_log_tables()

    def causal_order(self) -> list[int]:
        """Nodes sorted so that causes come before effects."""
        return [int(node) for node in torch.argsort(depth_of_nodes(self.edges), stable=True)]

    def adjacency(self) -> Tensor:
        """The edges, bool `[L, L]`."""
        return self.edges

    def log_prior(self) -> Tensor:
        """0: no gradient moves anything; the prior of the tables is in their closed form (`log_table_prior`)."""
        return self.log_tables.new_zeros(())

    def log_table_prior(self, pseudo_count: float) -> Tensor:
        """The declared log-prior a Σ log θ over the entries of all tables, up to a constant, a scalar."""
        return pseudo_count * sum(table.sum() for table in self._own_tables())  # type: ignore[return-value]

    def draw_noise(self, scale: float) -> None:
        """Nothing: there are no scores."""

    def project(self) -> None:
        """Nothing: there are no weights."""

    def set_temperature(self, temperature: float) -> None:
        """Nothing: the edges are hard."""

    def score_form(self) -> ScoreForm:
        """Depth of the nodes, 1 for pairs that are joined, temperature 0: E of these is the adjacency in the limit."""
        joined = (self.edges | self.edges.T).to(self.log_tables)
        return ScoreForm(depth_of_nodes(self.edges).to(self.log_tables), joined, 0.0)

    @torch.no_grad()
    def set_edges(self, edges: Tensor) -> None:
        """Become another graph; its tables are to be fitted.

        Raises:
            ValueError: It has another size, numbers other than 0 and 1, or a cycle.
        """
        if edges.shape != self.edges.shape:
            raise ValueError(
                f"edges: expected shape {tuple(self.edges.shape)}, got {tuple(edges.shape)}; pass a row per node"
            )
        if bool(((edges != 0) & (edges != 1)).any()):
            raise ValueError("edges: expected 0 and 1 alone, got other numbers; say 1 where a row causes a column")
        depth_of_nodes(edges)
        self.edges.copy_(edges > 0)

    @torch.no_grad()
    def fit(self, cell_count: Tensor, pseudo_count: float) -> None:
        """Set all tables to their closed form for this graph.

        Args:
            cell_count: n_c, `[C]` or `[C_1, ..., C_L]`, not negative.
            pseudo_count: a > 0.
        """
        count = cell_count.double().reshape(self.outcomes)
        for node, table in enumerate(self.log_tables):
            family = count.sum(self._absent(node), keepdim=True) if self._absent(node) else count
            smoothed = family + pseudo_count
            table.copy_((smoothed / smoothed.sum(node, keepdim=True)).log())

    @torch.no_grad()
    def take_over(self, adjacency: Tensor, joint: Tensor) -> None:
        """Become a given graph with a given p(N); see `NodeGraph.take_over`."""
        self.set_edges(adjacency)
        self.take_over_joint(joint)

    @torch.no_grad()
    def take_over_joint(self, joint: Tensor) -> None:
        """Each table becomes p(N_l | parents) under a p(N) `[C_1, ..., C_L]`; the graph stays."""
        smallest = torch.finfo(self.log_tables.dtype).tiny
        for node, table in enumerate(self.log_tables):
            table.copy_(conditional_table(joint, node, self.edges[:, node]).clamp(min=smallest).log())

    def _absent(self, node: int) -> list[int]:
        """Nodes that are neither this one nor its parents."""
        return [k for k in range(self.n_nodes) if k != node and not self.edges[k, node]]

    def _own_tables(self) -> list[Tensor]:
        """log θ of every node along its own axis and those of its parents alone."""
        chosen = []
        for node, table in enumerate(self.log_tables):
            for k in self._absent(node):
                table = table.select(k, 0).unsqueeze(k)
            chosen.append(table)
        return chosen


# p(N) with a weight of its own for every cell: no graph, but the interface of one.


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
