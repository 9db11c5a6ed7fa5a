"""Labels that tell N of some samples: every objective runs over the cells that they leave possible, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from by_hand import Pieces, pieces
from ladder_example import CASES, Case, Example, assert_same, build, loss, outcome_of, stock, three_ways
from torch import Tensor

from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior, log_responsibilities
from causalpima.models.batch import Batch

every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
every_objective = pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])


def labelled(case: Case) -> Example:
    """One sample without labels, one with all of them, the others with some."""
    example = build(case)
    n_cells = example.model.mixture.n_cells
    cells = torch.rand(7, n_cells) < 0.5
    cells[torch.arange(7), torch.randint(n_cells, (7,))] = True
    cells[0] = True
    cells[1] = torch.arange(n_cells) == 2
    return example._replace(batch=replace(example.batch, cells=cells))


def possible(batch: Batch) -> Tensor:
    assert batch.cells is not None
    return batch.cells


def rows(example: Example) -> list[tuple[Pieces, Tensor]]:
    """Per sample, the pieces of the components in its possible cells, and their positions."""
    p, found = pieces(example), []
    for n in range(7):
        kept = torch.nonzero(possible(example.batch)[n, example.model.mixture.component_cell]).squeeze(-1)
        per_component = {
            name: getattr(p, name)[n : n + 1, kept]
            for name in ("log_density", "expected_log_density", "log_likelihood", "latent_free")
        }
        one = {name: getattr(p, name)[n : n + 1] for name in ("log_q", "entropy")}
        found.append((Pieces(log_weight=p.log_weight[kept], **per_component, **one), kept))
    return found


def by_brute_force(objective: ObjectiveName, example: Example) -> Tensor:
    """The bound per sample, `[batch]`, with sums over the possible components alone."""
    closed = {
        "collapsed": lambda p: p.collapsed(),
        "meanfield": lambda p: p.closed(p.log_geometric),
        "paper": lambda p: p.closed(p.log_gamma),
    }[objective]
    return torch.cat([closed(p) for p, _ in rows(example)])


@every_case
@every_objective
def test_values_and_gradients_are_those_of_the_possible_cells(objective: ObjectiveName, case: Case) -> None:
    example = labelled(case)
    expected = outcome_of(loss(example, by_brute_force(objective, example)), example.leaves())
    guide = example.guide(cell_posterior(objective, example.model))
    for direct in (True, False):
        for outcome in three_ways(make_elbo(objective, direct=direct), guide, example):
            assert_same(outcome, expected)
    unlabelled = example._replace(batch=replace(example.batch, cells=None))
    assert abs(expected.value - loss(example, by_brute_force_of_all(objective, unlabelled)).item()) > 0.1


def by_brute_force_of_all(objective: ObjectiveName, example: Example) -> Tensor:
    every = torch.ones(7, example.model.mixture.n_cells, dtype=torch.bool)
    return by_brute_force(objective, example._replace(batch=replace(example.batch, cells=every)))


@every_case
def test_pyros_own_contraction_agrees(case: Case) -> None:
    example = labelled(case)
    expected = outcome_of(loss(example, by_brute_force("collapsed", example)), example.leaves())
    assert_same(outcome_of(stock(example, example.guide()), example.leaves()), expected)


@every_case
@every_objective
def test_responsibilities_are_those_among_the_possible_cells(objective: ObjectiveName, case: Case) -> None:
    example = labelled(case)
    r = log_responsibilities(objective, example.model, example.posterior(), example.sample(), example.batch).exp()
    allowed = possible(example.batch)[:, example.model.mixture.component_cell]
    assert bool((r[~allowed] == 0).all())
    torch.testing.assert_close(r.sum(-1), torch.ones(7))
    for n, (p, kept) in enumerate(rows(example)):
        expected = {"collapsed": p.log_exact, "meanfield": p.log_geometric, "paper": p.log_gamma}[objective]
        torch.testing.assert_close(r[n, kept], expected[0].exp())


@every_objective
def test_labels_of_all_nodes_leave_one_cell(objective: ObjectiveName) -> None:
    example = labelled(CASES["everything"])
    r = log_responsibilities(objective, example.model, example.posterior(), example.sample(), example.batch).exp()
    torch.testing.assert_close(example.model.mixture.sum_to_cells(r)[1], torch.eye(12)[2])


def test_labels_go_with_their_samples() -> None:
    batch = labelled(CASES["diagonal"]).batch
    cells = possible(batch)
    assert torch.equal(possible(batch.at(torch.tensor([4, 1]))), cells[[4, 1]])
    assert torch.equal(possible(batch.repeated(2)), cells.repeat(2, 1))
    assert torch.equal(possible(batch.without("image")), cells)
    assert replace(batch, cells=None).log_allowed(torch.zeros(1)) is None
