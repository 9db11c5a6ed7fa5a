"""Samples under interventions: every objective, and q(N|X), have p(N | e) in place of p(N) for these."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from by_hand import Pieces, pieces
from ladder_example import CASES, Case, Example, assert_same, build, loss, outcome_of, stock, three_ways
from torch import Tensor

from causalpima.inference.objectives import closed_form
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import (
    ObjectiveName,
    cell_posterior,
    components,
    given_latent,
    latent_free_log_likelihood,
    log_likelihood,
    log_responsibilities,
)

CODES = torch.tensor([0, 1, 2, 1, 3, 2, 0])
every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
every_objective = pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])


def under_interventions(case: Case) -> Example:
    """No intervention; do(node 1), whose effect is node 0; soft upon node 0; one that training never saw."""
    example = build(case)
    generator = torch.Generator().manual_seed(3)
    do = torch.rand(1, case.outcomes[1], *[1] * (len(case.outcomes) - 2), generator=generator)
    soft = torch.rand(case.outcomes, generator=generator)
    tables = [None, do / do.sum(), soft / soft.sum(0, keepdim=True), None]
    example.model.environments.replace([None, 1, 0, None], tables, example.model.graph.log_joint().detach())
    return example._replace(batch=replace(example.batch, environment=CODES))


def by_hand(example: Example) -> Pieces:
    """The pieces, with log p(N | e) of every sample written out from its tables."""
    model, p = example.model, pieces(example)
    log_tables, own = model.graph.conditional_log_tables(), model.environments.log_own
    assert own is not None
    joints = [log_tables.sum(0)] * 4
    joints[1] = log_tables[0] + own[1] + log_tables[2:].sum(0)
    joints[2] = own[2] + log_tables[1:].sum(0)
    mixture = model.mixture
    weight = [joints[code].flatten()[mixture.component_cell] + mixture.component_log_share for code in CODES]
    return p._replace(log_weight=torch.stack(weight))


def bound(objective: ObjectiveName, p: Pieces) -> Tensor:
    if objective == "collapsed":
        return p.collapsed()
    return p.closed(p.log_geometric if objective == "meanfield" else p.log_gamma)


@every_case
@every_objective
def test_values_and_gradients_of_the_programs(objective: ObjectiveName, case: Case) -> None:
    example = under_interventions(case)
    expected = outcome_of(loss(example, bound(objective, by_hand(example))), example.leaves())
    guide = example.guide(cell_posterior(objective, example.model))
    for direct in (True, False):
        for outcome in three_ways(make_elbo(objective, direct=direct), guide, example):
            assert_same(outcome, expected)
    assert abs(expected.value - loss(example, bound(objective, pieces(example))).item()) > 0.01


@every_case
def test_pyros_own_contraction_agrees(case: Case) -> None:
    example = under_interventions(case)
    expected = outcome_of(loss(example, bound("collapsed", by_hand(example))), example.leaves())
    assert_same(outcome_of(stock(example, example.guide()), example.leaves()), expected)


@every_case
@every_objective
def test_closed_forms_agree(objective: ObjectiveName, case: Case) -> None:
    example = under_interventions(case)
    model, batch, posterior, z = example.model, example.batch, example.posterior(), example.sample()
    parts = components(model, batch)
    likelihoods = {name: log_likelihood(model, name, z, batch) for name in model.decoders}
    if objective == "meanfield":
        free = latent_free_log_likelihood(model, z, batch)
        terms = closed_form.meanfield(posterior.loc, posterior.scale, parts, likelihoods, free)
    else:
        form = closed_form.collapsed if objective == "collapsed" else closed_form.paper
        terms = form(z, posterior.loc, posterior.scale, parts, likelihoods)
    torch.testing.assert_close(terms.total, bound(objective, by_hand(example)), rtol=0, atol=1e-10)


@every_case
@every_objective
def test_responsibilities_by_brute_force(objective: ObjectiveName, case: Case) -> None:
    example, p = under_interventions(case), by_hand(under_interventions(case))
    found = log_responsibilities(objective, example.model, example.posterior(), example.sample(), example.batch)
    expected = {"collapsed": p.log_exact, "meanfield": p.log_geometric, "paper": p.log_gamma}[objective]
    torch.testing.assert_close(found, expected)


@every_case
def test_what_is_said_at_given_latents(case: Case) -> None:
    example, p = under_interventions(case), by_hand(under_interventions(case))
    given = given_latent(example.model, example.sample(), example.batch)
    cell = example.model.mixture.component_cell
    for n in range(7):
        for c in range(example.model.mixture.n_cells):
            expected = torch.logsumexp((p.log_weight + p.log_density)[n, cell == c], 0)
            torch.testing.assert_close(given.log_prior[n, c], expected)


def test_environments_go_with_their_samples() -> None:
    batch = under_interventions(CASES["diagonal"]).batch
    for found, expected in (
        (batch.at(torch.tensor([4, 1])), CODES[[4, 1]]),
        (batch.repeated(2), CODES.repeat(2)),
        (batch.without("image"), CODES),
    ):
        assert found.environment is not None
        assert torch.equal(found.environment, expected)


@every_objective
def test_labels_and_environments_go_together(objective: ObjectiveName) -> None:
    example = under_interventions(CASES["everything"])
    cells = torch.rand(7, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    cells[:, 3] = True
    labelled = example._replace(batch=replace(example.batch, cells=cells))
    arguments = objective, example.model, example.posterior(), example.sample()
    free, told = (log_responsibilities(*arguments, each.batch).exp() for each in (example, labelled))
    kept = free * cells[:, example.model.mixture.component_cell]
    torch.testing.assert_close(told, kept / kept.sum(-1, keepdim=True))
