"""The ladder T1-T8: Pyro's enumeration, our objectives and the closed forms tied together (docs/objectives.md)."""

from __future__ import annotations

from collections.abc import Callable

import pyro
import pytest
import torch
from by_hand import Pieces, from_tensors, kl, pieces
from ladder_example import (
    CASES,
    Case,
    Example,
    FixedNoise,
    assert_same,
    at_the_noise,
    build,
    given,
    loss,
    outcome_of,
    stock,
    three_ways,
)
from torch import Tensor

from causalpima.inference.objectives.enumerated import AnalyticLatentELBO, CollapsedELBO, make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior

every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
HAND: dict[ObjectiveName, Callable[[Pieces], Tensor]] = {
    "collapsed": lambda p: p.collapsed(),
    "meanfield": lambda p: p.closed(p.log_geometric),
    "paper": lambda p: p.closed(p.log_gamma),
}


def arbitrary_log_r(example: Example) -> Tensor:
    """A leaf, so that its gradient is compared as well."""
    logits = torch.randn(len(example.batch), example.model.mixture.n_components)
    return torch.log_softmax(logits, dim=-1).detach().requires_grad_()


@every_case
def test_t1_stock_enumeration_is_the_hand_marginalised_bound(case: Case) -> None:
    example = build(case)
    expected = outcome_of(loss(example, pieces(example).collapsed()), example.leaves())
    assert_same(outcome_of(stock(example, example.guide()), example.leaves()), expected)


def test_t1_one_site_over_cells_equals_one_site_per_node_in_causal_order() -> None:
    # N1 <- N2 <- N3, N1 <- N3: causes come last
    flat, nodes = build(Case((2, 3, 2))), build(Case((2, 3, 2), sites="nodes"))
    assert nodes.model.graph.causal_order() == [2, 1, 0]
    losses = [outcome_of(stock(example, example.guide()), example.leaves()) for example in (flat, nodes)]
    assert_same(*losses)


@every_case
@pytest.mark.parametrize("objective", list(HAND))
def test_t1_t5_every_objective_equals_its_hand_written_form(objective: ObjectiveName, case: Case) -> None:
    example = build(case)
    expected = outcome_of(loss(example, HAND[objective](pieces(example))), example.leaves())
    guide = example.guide(cell_posterior(objective, example.model))
    for outcome in three_ways(make_elbo(objective), guide, example):
        assert_same(outcome, expected)
    by_pyro = make_elbo(objective, direct=False).differentiable_loss
    assert_same(outcome_of(at_the_noise(by_pyro, example, guide), example.leaves()), expected)
    assert_same(outcome_of(loss(example, from_tensors(objective, example).total), example.leaves()), expected)


@every_case
@pytest.mark.parametrize("objective", list(HAND))
def test_terms_are_those_of_the_closed_form_and_add_up(objective: ObjectiveName, case: Case) -> None:
    example = build(case)
    guide = FixedNoise(example.noise)(example.guide(cell_posterior(objective, example.model)))
    evaluation = make_elbo(objective).evaluate(example.model, guide, example.batch)
    assert evaluation.terms is not None
    expected = from_tensors(objective, example)
    torch.testing.assert_close(evaluation.elbo.detach(), -loss(example, evaluation.terms.total), rtol=0, atol=1e-10)
    torch.testing.assert_close(
        dict(evaluation.terms.reconstruction), {m: v.detach() for m, v in expected.reconstruction.items()}
    )
    for name in ("cells", "latent", "cell_entropy", "latent_entropy"):
        torch.testing.assert_close(getattr(evaluation.terms, name), getattr(expected, name).detach())


@pytest.mark.parametrize("objective", list(HAND))
@pytest.mark.parametrize("rows", [slice(0, 3), slice(4, 5)], ids=["short last batch", "a batch of one"])
def test_a_batch_is_scaled_to_the_data_set(objective: ObjectiveName, rows: slice) -> None:
    example = build(CASES["everything"]).part(rows)
    assert example.scale == 20 / len(range(*rows.indices(7)))
    expected = outcome_of(loss(example, HAND[objective](pieces(example))), example.leaves())
    guide = example.guide(cell_posterior(objective, example.model))
    for outcome in three_ways(make_elbo(objective), guide, example):
        assert_same(outcome, expected)


@pytest.mark.parametrize("objective", list(HAND))
def test_without_validation_the_objectives_are_the_same(objective: ObjectiveName) -> None:
    example = build(CASES["everything"])
    expected = outcome_of(loss(example, HAND[objective](pieces(example))), example.leaves())
    guide = example.guide(cell_posterior(objective, example.model))
    with pyro.validation_enabled(False):
        outcomes = three_ways(make_elbo(objective), guide, example)
    for outcome in outcomes:
        assert_same(outcome, expected)


@pytest.mark.float32
@pytest.mark.parametrize("objective", list(HAND))
def test_single_precision_stays_single_and_comes_close(objective: ObjectiveName) -> None:
    example = build(CASES["everything"])
    guide = example.guide(cell_posterior(objective, example.model))
    expected = loss(example, HAND[objective](pieces(example)))
    for direct in (True, False):
        actual = at_the_noise(make_elbo(objective, direct=direct).differentiable_loss, example, guide)
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("objective", list(HAND))
def test_an_absent_modality_is_as_if_it_were_not_in_the_model(objective: ObjectiveName) -> None:
    example = build(CASES["diagonal"])
    guide = example.guide(cell_posterior(objective, example.model))
    number, _, graded = three_ways(make_elbo(objective), guide, example)
    assert graded.gradients is not None
    of_assay = [g for name, g in graded.gradients.items() if ".assay." in name]
    assert of_assay
    assert all(bool((g == 0).all()) for g in of_assay)
    without = build(CASES["diagonal"])
    del without.model.decoders["assay"]
    del without.encoders["assay"]
    guide = without.guide(cell_posterior(objective, without.model))
    assert_same(three_ways(make_elbo(objective), guide, without)[0], number)


@every_case
def test_t2_the_exact_posterior_of_n_in_the_guide_changes_nothing(case: Case) -> None:
    example = build(case)
    expected = outcome_of(loss(example, pieces(example).collapsed()), example.leaves())
    guide = example.guide(lambda *_: given(example.model, pieces(example).log_exact))
    assert_same(outcome_of(stock(example, guide), example.leaves()), expected)
    for outcome in three_ways(CollapsedELBO(), guide, example):
        assert_same(outcome, expected)


@every_case
def test_t3_any_r_in_the_guide_loses_its_divergence_from_the_exact_posterior(case: Case) -> None:
    example = build(case)
    log_r, p = arbitrary_log_r(example), pieces(example)
    leaves = example.leaves() | {"log_r": log_r}
    expected = outcome_of(loss(example, p.collapsed() - kl(normalised(log_r), p.log_exact)), leaves)
    guide = example.guide(lambda *_: given(example.model, normalised(log_r)))
    assert_same(outcome_of(stock(example, guide), leaves), expected)
    for outcome in three_ways(CollapsedELBO(), guide, example, log_r=log_r):
        assert_same(outcome, expected)


def normalised(log_r: Tensor) -> Tensor:
    return torch.log_softmax(log_r, dim=-1)


@pytest.mark.parametrize("name", ["decoders per cell", "a decoder on N alone"])
def test_t3_with_cells_in_the_decoders_needs_the_exact_posterior(name: str) -> None:
    p = pieces(build(CASES[name]))
    log_r = torch.log_softmax(torch.randn_like(p.log_gamma), dim=-1)
    bound = p.collapsed() - kl(log_r, p.log_exact)
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(bound, p.collapsed() - kl(log_r, p.log_gamma), rtol=0, atol=1e-2)


@every_case
def test_t5_given_r_the_analytic_elbo_is_the_closed_form_with_all_constants(case: Case) -> None:
    example = build(case)
    log_r = arbitrary_log_r(example)
    leaves = example.leaves() | {"log_r": log_r}
    expected = outcome_of(loss(example, pieces(example).closed(normalised(log_r))), leaves)
    guide = example.guide(lambda *_: given(example.model, normalised(log_r)))
    for outcome in three_ways(AnalyticLatentELBO(), guide, example, log_r=log_r):
        assert_same(outcome, expected)
    by_pyro = AnalyticLatentELBO(direct=False).differentiable_loss
    assert_same(outcome_of(at_the_noise(by_pyro, example, guide), leaves), expected)


@every_case
def test_t7_fisher_identity_for_the_graph(case: Case) -> None:
    """∂T1/∂log A = p(N | z, X): the gradient in every parameter of the graph is that of Σ_c p(c | z, X) log A_c."""
    example = build(case)
    p = pieces(example)
    graph = {name: leaf for name, leaf in example.leaves().items() if name.startswith("graph.")}
    surrogate = outcome_of(loss(example, (p.log_exact.detach().exp() * p.log_weight).sum(-1)), graph)
    actual = outcome_of(stock(example, example.guide()), graph)
    torch.testing.assert_close(actual.gradients, surrogate.gradients, rtol=0, atol=1e-10)
