"""The program over (ξ, B, W): its density by hand, and its prior by NUTS."""

from __future__ import annotations

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro import poutine

from causalpima.inference.graphs.chains import CellEvidence, HodgePrior, HodgeProgram, Settings, run_chain
from causalpima.models.graph.base import EdgeConstraints
from causalpima.models.graph.hodge import HodgeGraph


def test_density_is_prior_and_likelihood_of_the_graph_of_training() -> None:
    evidence = CellEvidence(np.random.default_rng(0).normal(size=(20, 6)))
    program = HodgeProgram(evidence, (2, 3), HodgePrior(temperature=0.3, edge_rate=2.0, concentration=1.5))
    trace = poutine.trace(program).get_trace()
    draw = {name: site["value"] for name, site in trace.nodes.items() if site["type"] == "sample"}
    graph = HodgeGraph((2, 3), temperature=0.3)
    with torch.no_grad():
        graph.node_score.copy_(draw["node_score"])
        graph.pair_weight.copy_(draw["edge_weight"])
        graph.conditional_logits.copy_(torch.stack([draw["table_0"].log().T, draw["table_1"].log()]))
    expected = evidence.log_likelihood(graph.eval().log_joint().flatten())
    expected = expected + dist.Normal(0.0, 1.0).log_prob(draw["node_score"]).sum()
    expected = expected + dist.Exponential(2.0).log_prob(draw["edge_weight"]).sum()
    for node, size in enumerate((2, 3)):
        expected = expected + dist.Dirichlet(torch.full((size,), 1.5)).log_prob(draw[f"table_{node}"]).sum()
    assert torch.allclose(trace.log_prob_sum(), expected)


def test_chain_keeps_energies_of_every_draw() -> None:
    program = HodgeProgram(CellEvidence(np.zeros((1, 4))), (2, 2))
    settings = Settings(10, 20, max_tree_depth=3)
    chain = run_chain(program, settings, seed=0)
    assert chain.energy.shape == chain.log_density.shape == chain.diverging.shape == (20,)
    assert (chain.energy[1:] >= -chain.log_density[:-1] - 1e-9).all()  # kinetic energy is not negative
    np.random.random(3)
    before = np.random.get_state(legacy=False), torch.get_rng_state()
    again = run_chain(program, settings, seed=0)
    assert np.random.get_state(legacy=False)["state"]["pos"] == before[0]["state"]["pos"]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert np.array_equal(chain.log_density, again.log_density)


def test_what_is_known_holds_in_every_draw_as_in_the_graph_of_training() -> None:
    forbidden, required = torch.zeros(3, 3, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.bool)
    forbidden[0, 1] = required[2, 0] = True
    program = HodgeProgram(CellEvidence(np.zeros((1, 8))), (2, 2, 2), constraints=EdgeConstraints(forbidden, required))
    graph = HodgeGraph((2, 2, 2), temperature=0.05, constraints=EdgeConstraints(forbidden, required)).double()
    for seed in range(20):
        pyro.set_rng_seed(seed)
        trace = poutine.trace(program).get_trace()
        draw = {name: site["value"] for name, site in trace.nodes.items() if site["type"] == "sample"}
        strength = program.edge_strength(draw)
        assert strength[0, 1] == strength[0, 2] == 0
        assert strength[2, 0] == 1
        assert program.log_joint(draw).exp().sum() == pytest.approx(1)
        with torch.no_grad():
            graph.node_score.copy_(draw["node_score"])
            graph.pair_weight.copy_(draw["edge_weight"])
        assert torch.allclose(strength, graph.eval().edge_strength())
