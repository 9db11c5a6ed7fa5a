"""Sites for N: one over cells, one per node in causal order, and the chain rule; all the same distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyro
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pyro import poutine
from pyro.poutine.enum_messenger import EnumMessenger
from torch import Tensor

from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.program import cell_index, sample_cell, sample_nodes, sample_nodes_jointly

BATCH = 3


def enumerated_joint(program: Callable[[], Tensor], n_cells: int) -> Tensor:
    """log p(cell) `[C, batch]`: sum of the sites' log-densities, put where the returned index says."""
    with EnumMessenger(first_available_dim=-2):
        trace = poutine.trace(program).get_trace()
    trace.compute_log_prob()
    cell = trace.nodes["_RETURN"]["value"]
    sites = [site["log_prob"] for name, site in trace.nodes.items() if name.startswith("N")]
    log_prob, where = torch.broadcast_tensors(sum(sites), cell)
    flat, rows = log_prob.expand(*log_prob.shape[:-1], BATCH).reshape(-1, BATCH), where[..., 0].reshape(-1)
    assert sorted(rows.tolist()) == list(range(n_cells)), "every cell once"
    return flat[torch.argsort(rows)]


def in_plate(draw: Callable[[], Tensor]) -> Callable[[], Tensor]:
    def program() -> Tensor:
        with pyro.plate("data", BATCH, dim=-1):
            return draw()

    return program


def names(n_nodes: int) -> list[str]:
    return [str(node + 1) for node in range(n_nodes)]


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), st.integers(0, 2**32))
def test_cell_index_is_row_major(outcomes: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, outcomes, size=(6, len(outcomes))).T
    ours = cell_index([torch.from_numpy(value) for value in values], outcomes)
    np.testing.assert_array_equal(ours.numpy(), np.ravel_multi_index(tuple(values), tuple(outcomes)))


# any soft graph of 1 to 4 nodes: N1 --- N2
#                                   \   /
#                                    N3  ...
@given(st.lists(st.integers(2, 3), min_size=1, max_size=4), st.integers(0, 2**32))
@settings(max_examples=25)
def test_sites_per_node_are_the_site_over_cells(outcomes: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    graph = HodgeGraph(outcomes, temperature=0.5)
    graph.conditional_logits.data.mul_(20)
    tables = graph.conditional_log_tables().detach()
    by_cell = enumerated_joint(in_plate(lambda: sample_cell(tables.sum(0).reshape(-1))), graph.n_cells)
    order = graph.causal_order()
    by_node = enumerated_joint(in_plate(lambda: sample_nodes(names(len(outcomes)), tables, order)), graph.n_cells)
    torch.testing.assert_close(by_node, by_cell, rtol=0, atol=1e-12)
    expected = graph.log_joint().detach().reshape(-1, 1).expand(-1, BATCH)
    torch.testing.assert_close(by_cell, expected, rtol=0, atol=1e-12)


# N1 -> N2              effects first: the table of N2 is read at N1 = 0, another distribution
def test_another_order_than_the_causal_one_is_wrong() -> None:
    table = torch.log(torch.tensor([[[0.3, 0.3], [0.7, 0.7]], [[0.9, 0.1], [0.2, 0.8]]]))
    joint = table.sum(0).reshape(-1, 1).expand(-1, BATCH)
    forwards, backwards = (
        enumerated_joint(in_plate(lambda order=order: sample_nodes(["1", "2"], table, order)), 4)  # type: ignore[misc]
        for order in ([0, 1], [1, 0])
    )
    torch.testing.assert_close(forwards, joint)
    assert (backwards - joint).abs().max() > 0.1


@given(st.lists(st.integers(2, 3), min_size=1, max_size=4), st.integers(0, 2**32))
@settings(max_examples=25)
def test_chain_rule_gives_back_any_joint_per_sample(outcomes: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    logits = 2 * torch.randn(BATCH, *outcomes)
    n_cells = logits[0].numel()
    by_node = enumerated_joint(in_plate(lambda: sample_nodes_jointly(names(len(outcomes)), logits)), n_cells)
    by_cell = enumerated_joint(in_plate(lambda: sample_cell(logits.flatten(1))), n_cells)
    torch.testing.assert_close(by_node, by_cell, rtol=0, atol=1e-12)
    torch.testing.assert_close(by_cell, torch.log_softmax(logits.flatten(1), -1).T, rtol=0, atol=1e-12)


# N3 -> N1 -> N2
@pytest.mark.parametrize("sites", ["cells", "nodes", "jointly"])
def test_draws_have_the_frequencies_of_the_joint(sites: str) -> None:
    graph, n = HodgeGraph((2, 2, 3), temperature=0.3), 20_000
    graph.node_score.data = torch.tensor([0.2, 0.9, -0.7])
    graph.conditional_logits.data.mul_(10)
    tables = graph.conditional_log_tables().detach()
    joint = tables.sum(0)
    draws = {
        "cells": lambda: sample_cell(joint.reshape(-1)),
        "nodes": lambda: sample_nodes(names(3), tables, graph.causal_order()),
        "jointly": lambda: sample_nodes_jointly(names(3), joint.expand(n, 2, 2, 3)),
    }
    with pyro.plate("data", n, dim=-1):
        cell = draws[sites]()
    assert cell.shape == (n,)
    expected = joint.exp().reshape(-1)
    frequency = torch.bincount(cell, minlength=12) / n
    assert ((frequency - expected).abs() < 4.5 * (expected * (1 - expected) / n).sqrt()).all()
