"""Random soft graphs, and their log p(N) by other ways: Algorithm 1 as printed, and the sum over all edge masks."""

from __future__ import annotations

from itertools import permutations, product
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from causalpima.models.dag import edge_strength, log_normalise_tables


class Case(NamedTuple):
    """One soft graph: L nodes with scores, symmetric edge weights, a temperature and tables."""

    node_score: Tensor
    edge_weight: Tensor
    temperature: float
    conditional_logits: Tensor

    @property
    def strength(self) -> Tensor:
        return edge_strength(self.node_score, self.edge_weight, self.temperature)


def symmetric(pair_weights: list[float], n_nodes: int) -> Tensor:
    rows, columns = torch.triu_indices(n_nodes, n_nodes, offset=1)
    weight = torch.zeros(n_nodes, n_nodes)
    weight[rows, columns] = torch.tensor(pair_weights)
    return weight + weight.T


@st.composite
def cases(draw: st.DrawFn, max_nodes: int = 4) -> Case:
    n = draw(st.integers(1, max_nodes))
    outcomes = draw(st.lists(st.integers(2, 4 if n < 4 else 3), min_size=n, max_size=n))
    score = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5]) | st.floats(-4, 4), min_size=n, max_size=n))
    weight = st.just(0.0) | st.floats(0, 5)
    n_pairs = n * (n - 1) // 2
    weights = draw(st.lists(weight, min_size=n_pairs, max_size=n_pairs))
    temperature = 10 ** draw(st.floats(-3, 1))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    logits = draw(st.floats(0, 5)) * torch.randn(n, *outcomes, generator=generator)
    return Case(torch.tensor(score), symmetric(weights, n), temperature, logits)


def chain_with_skip(temperature: float = 1.0) -> Case:
    """N2 -> N3 -> N1 with N2 -> N1, different strengths everywhere, sizes 2, 3, 4."""
    generator = torch.Generator().manual_seed(3)
    logits = 1.5 * torch.randn(3, 2, 3, 4, generator=generator)
    return Case(torch.tensor([0.9, -0.7, 0.1]), symmetric([0.6, 1.1, 0.3], 3), temperature, logits)


def algorithm_1(conditional_logits: Tensor, strength: Tensor, node_score: Tensor, transposed: bool = False) -> Tensor:
    """Algorithm 1 of the paper, line by line, in probabilities: sort, average, mix, multiply, sort back.

    The paper prints the index E_lk (`transposed`); its equation for v_k has E_kl.
    """
    order = torch.argsort(node_score, stable=True)
    E = strength[order][:, order]
    E = E.T if transposed else E
    tables = [torch.softmax(conditional_logits[int(l)], dim=int(l)).permute(*order.tolist()) for l in order]
    A = torch.ones(())
    for l, W in enumerate(tables):
        later = list(range(l + 1, len(tables)))
        W = W.mean(later) if later else W
        for k in range(l):
            W = E[k, l] * W + (1.0 - E[k, l]) * W.mean(k, keepdim=True)
        A = W * A.unsqueeze(-1)
    return A.permute(*torch.argsort(order).tolist())


def mixture_over_masks(conditional_logits: Tensor, strength: Tensor) -> Tensor:
    """E over independent edges, `Σ_G ∏ E_ij^G_ij (1 - E_ij)^(1 - G_ij) p_G(N)`, by enumeration of all graphs."""
    tables = log_normalise_tables(conditional_logits).exp()
    pairs = [(i, j) for i, j in permutations(range(len(strength)), 2) if strength[i, j] > 0]
    total = torch.zeros(tables.shape[1:])
    for mask in product((0, 1), repeat=len(pairs)):
        graph = {pair for pair, kept in zip(pairs, mask, strict=True) if kept}
        weight = torch.ones(())
        for pair in pairs:
            weight = weight * (strength[pair] if pair in graph else 1 - strength[pair])
        total = total + weight * hard_joint(tables, graph)
    return total


def hard_joint(tables: Tensor, graph: set[tuple[int, int]]) -> Tensor:
    """p(N) of one hard graph: each table averaged over the nodes that are no parents, then multiplied."""
    joint = torch.ones(tables.shape[1:])
    for node, table in enumerate(tables):
        strangers = [k for k in range(len(tables)) if k != node and (k, node) not in graph]
        joint = joint * (table.mean(strangers, keepdim=True) if strangers else table)
    return joint
