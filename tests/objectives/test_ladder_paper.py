"""T4 and T8 of the ladder: the bridge to the loss that the paper prints, and the readings of the paper that fail."""

from __future__ import annotations

import math

import pytest
import torch
from by_hand import Pieces, from_tensors, kl, pieces
from ladder_example import CASES, Case, Example, FixedNoise, assert_same, build, loss, outcome_of, stock, three_ways
from torch import Tensor

from causalpima.inference.objectives.enumerated import CollapsedELBO, make_elbo
from causalpima.inference.objectives.responsibilities import cell_posterior
from causalpima.models.graph.hodge import HodgeGraph

every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
on_a_diagonal = pytest.mark.parametrize("name", ["diagonal", "decoders per cell"])


def delta_on_a_diagonal(example: Example, log_r: Tensor) -> Tensor:
    """The line of T4 for diagonal covariance, at z = μ + σ ε."""
    eps, q, mixture = example.noise, example.posterior(), example.model.mixture
    mu, sigma = q.loc.unsqueeze(1), q.scale.unsqueeze(1)
    fluctuation = sigma**2 * (eps**2 - 1).unsqueeze(1) + 2 * sigma * eps.unsqueeze(1) * (mu - mixture.component_loc)
    per_component = (fluctuation / mixture.component_scale**2).sum(-1)
    return 0.5 * (eps**2 - 1).sum(-1) - 0.5 * (log_r.exp() * per_component).sum(-1)


def delta(p: Pieces, log_r: Tensor) -> Tensor:
    """T4 for any covariance: what z's log-ratio at the sample has over its expectation."""
    return (-p.log_q - p.entropy) + (log_r.exp() * (p.log_density - p.expected_log_density)).sum(-1)


@every_case
def test_t4_bridge_from_enumeration_to_the_closed_form_per_sample(case: Case) -> None:
    example = build(case)
    p = pieces(example)
    paper = from_tensors("paper", example).total
    bridge = delta(p, p.log_gamma) + kl(p.log_gamma, p.log_exact)
    actual = CollapsedELBO().evaluate(example.model, FixedNoise(example.noise)(example.guide()), example.batch)
    assert actual.terms is not None
    torch.testing.assert_close(actual.terms.total, (paper + bridge).detach(), rtol=0, atol=1e-10)
    gradients = outcome_of(loss(example, paper + bridge), example.leaves())
    assert_same(outcome_of(stock(example, example.guide()), example.leaves()), gradients)


@on_a_diagonal
def test_t4_the_diagonal_line_is_the_general_one(name: str) -> None:
    example = build(CASES[name])
    p = pieces(example)
    torch.testing.assert_close(delta_on_a_diagonal(example, p.log_gamma), delta(p, p.log_gamma), rtol=0, atol=1e-12)


def test_t4_with_decoders_on_z_alone_the_divergence_is_nought() -> None:
    p = pieces(build(CASES["diagonal"]))
    torch.testing.assert_close(kl(p.log_gamma, p.log_exact), torch.zeros(7), rtol=0, atol=1e-12)


def abbreviated(example: Example, literal: bool = False) -> Tensor:
    """The paper's abbreviated loss for diagonal covariance, `[batch]`; `literal`: without the missing parentheses.

    Σ over modalities that are present; D_m times log σ̂_m² (docs/errata.md item 3).
    """
    model, q, mixture, p = example.model, example.posterior(), example.model.mixture, pieces(example)
    gamma, z = p.log_gamma.exp(), example.sample()
    bound = q.scale.square().log().sum(-1)
    for m, decoder in model.decoders.items():
        per_cell = []
        for c in range(mixture.n_cells):
            x_given = decoder(z, torch.tensor(c))
            residual = ((example.batch.values[m] - x_given.mean) / x_given.scale).flatten(1)
            log_variance = residual.shape[1] * x_given.scale.square().log()
            error = residual.square().sum(-1)
            per_cell.append(-log_variance + error if literal else -(log_variance + error))
        here = (gamma * torch.stack(per_cell, dim=-1)[:, mixture.component_cell]).sum(-1)
        present = example.batch.present[m]
        bound = bound + (here if present is None else here * present)
    variance = mixture.component_scale.square()
    spread = (
        q.scale.square().unsqueeze(1) / variance + (q.loc.unsqueeze(1) - mixture.component_loc) ** 2 / variance
    ).sum(-1)
    log_variance = variance.log().sum(-1)
    inside = 2 * (p.log_weight - p.log_gamma) + (-log_variance + spread if literal else -(log_variance + spread))
    return bound + (gamma * inside).sum(-1)


def constants(example: Example) -> Tensor:
    """J - Σ_m D_m log 2π over the modalities that are present, `[batch]`."""
    total = torch.full((len(example.batch),), float(example.noise.shape[1]))
    for m, value in example.batch.values.items():
        present = example.batch.present[m]
        here = value[0].numel() * math.log(2 * math.pi)
        total = total - (here if present is None else here * present)
    return total


@on_a_diagonal
def test_t4_twice_the_bound_is_the_abbreviated_loss_with_its_constants(name: str) -> None:
    example = build(CASES[name])
    expected = outcome_of(loss(example, 0.5 * (abbreviated(example) + constants(example))), example.leaves())
    guide = example.guide(cell_posterior("paper", example.model))
    for outcome in three_ways(make_elbo("paper"), guide, example):
        assert_same(outcome, expected)


@on_a_diagonal
def test_t8_the_literal_signs_of_the_paper_fail(name: str) -> None:
    example = build(CASES[name])
    elbo = outcome_of(loss(example, from_tensors("paper", example).total), example.leaves())
    literal = outcome_of(
        loss(example, 0.5 * (abbreviated(example, literal=True) + constants(example))), example.leaves()
    )
    with pytest.raises(AssertionError, match="not close"):
        assert_same(literal, elbo)


def test_t8_the_literal_loss_has_no_upper_bound() -> None:
    example = build(CASES["diagonal"])
    with torch.no_grad():
        values = []
        for shrink in (1.0, 1e-2, 1e-4):
            example.model.mixture.component_scale.copy_(torch.full((6, 2), shrink))
            values.append([abbreviated(example, literal).sum().item() for literal in (True, False)])
    literal, correct = zip(*values, strict=True)
    assert literal[0] < literal[1] < literal[2]
    assert literal[2] > 1e6
    assert correct[0] > correct[1] > correct[2]


def algorithm_1(example: Example, as_printed: bool) -> Tensor:
    """log A by the paper's Algorithm 1: nodes in causal order, earlier ones mixed by E, later ones averaged out."""
    graph = example.model.graph
    assert isinstance(graph, HodgeGraph)
    order, strength = graph.causal_order(), graph.edge_strength()
    total = torch.zeros(graph.outcomes)
    for position, node in enumerate(order):
        table = torch.softmax(graph.conditional_logits[node], dim=node)
        for k in order:
            if k != node:
                kept = strength[node, k] if as_printed else strength[k, node]
                kept = kept if order.index(k) < position else torch.zeros(())
                table = kept * table + (1 - kept) * table.mean(k, keepdim=True)
        total = total + table.log()
    return total


@every_case
def test_t8_the_transposed_edge_index_fails(case: Case) -> None:
    example = build(case)
    cell, share = example.model.mixture.component_cell, example.model.mixture.component_log_share

    def t1(log_joint: Tensor) -> Tensor:
        p = pieces(example)._replace(log_weight=log_joint.flatten()[cell] + share)
        return loss(example, p.collapsed())

    actual = outcome_of(stock(example, example.guide()), example.leaves())
    assert_same(actual, outcome_of(t1(algorithm_1(example, as_printed=False)), example.leaves()))
    with pytest.raises(AssertionError, match="not close"):
        assert_same(actual, outcome_of(t1(algorithm_1(example, as_printed=True)), example.leaves()))


def test_t8_the_printed_algorithm_never_has_an_edge() -> None:
    example = build(CASES["diagonal"])
    joint = algorithm_1(example, as_printed=True).exp()
    torch.testing.assert_close(joint, joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True))
    joint = algorithm_1(example, as_printed=False).exp()
    assert (joint - joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)).abs().max() > 1e-2
