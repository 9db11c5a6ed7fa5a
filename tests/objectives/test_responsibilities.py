"""q(N | X) of each objective, from model, q(Z|X), z and batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from by_hand import log_likelihood_of, pieces
from ladder_example import CASES, Case, CurvePerCell, Example, build
from torch import Tensor

from causalpima.inference.objectives.responsibilities import (
    ObjectiveName,
    cell_posterior,
    components,
    latent_free_log_likelihood,
    log_likelihood,
    log_responsibilities,
)
from causalpima.models.distributions import IsotropicNormal

every_case = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
OBJECTIVES: list[ObjectiveName] = ["collapsed", "meanfield", "paper"]


def actual(objective: ObjectiveName, example: Example) -> Tensor:
    return log_responsibilities(objective, example.model, example.posterior(), example.sample(), example.batch)


@every_case
def test_each_objective_has_its_own(case: Case) -> None:
    example = build(case)
    p = pieces(example)
    torch.testing.assert_close(actual("collapsed", example), p.log_exact)
    torch.testing.assert_close(actual("meanfield", example), p.log_geometric)
    torch.testing.assert_close(actual("paper", example), p.log_gamma)


def test_they_differ_where_clusters_overlap() -> None:
    example = build(CASES["everything"])
    first, second, third = (actual(objective, example).exp() for objective in OBJECTIVES)
    for one, other in ((first, second), (second, third), (first, third)):
        assert (one - other).abs().max() > 0.05


@every_case
def test_the_weights_of_the_components_sum_to_one(case: Case) -> None:
    parts = components(build(case).model)
    torch.testing.assert_close(parts.log_weight.exp().sum(), torch.tensor(1.0))


@every_case
def test_likelihoods_are_those_of_the_decoders_and_zero_where_absent(case: Case) -> None:
    example = build(case)
    for m, decoder in example.model.decoders.items():
        value = log_likelihood(example.model, m, example.sample(), example.batch)
        expected = log_likelihood_of(example, m, example.sample())
        torch.testing.assert_close(value, expected if decoder.depends_on_cell else expected.squeeze(-1))
        present = example.batch.present[m]
        assert present is not None
        assert bool((value[~present] == 0).all())


def test_without_a_mask_every_sample_counts() -> None:
    example = build(CASES["decoders per cell"])
    complete = example._replace(batch=replace(example.batch, present=dict.fromkeys(example.batch.values)))
    value = log_likelihood(complete.model, "image", complete.sample(), complete.batch)
    assert bool((value != 0).all())
    torch.testing.assert_close(value, log_likelihood_of(complete, "image", complete.sample()))


def test_a_decoder_on_n_alone_counts_in_the_mean_field_and_others_do_not() -> None:
    example = build(CASES["everything"])
    sample, batch = example.sample(), example.batch
    free = latent_free_log_likelihood(example.model, sample, batch)
    assert free is not None
    torch.testing.assert_close(free, log_likelihood_of(example, "curve", sample))
    assert latent_free_log_likelihood(build(CASES["decoders per cell"]).model, sample, batch) is None


def test_several_decoders_on_n_alone_are_summed() -> None:
    example = build(CASES["a decoder on N alone"])
    example.model.decoders["assay"] = CurvePerCell(6, 4)
    batch = replace(example.batch, present={**example.batch.present, "assay": None})
    example = example._replace(batch=batch)
    free = latent_free_log_likelihood(example.model, example.sample(), batch)
    expected = log_likelihood_of(example, "curve", example.sample()) + log_likelihood_of(
        example, "assay", example.sample()
    )
    torch.testing.assert_close(free, expected)


class Constant(CurvePerCell):
    """The same curve for all cells."""

    def __init__(self, length: int) -> None:
        super().__init__(1, length)
        self.depends_on_cell = False

    def forward(self, latent: Tensor, cell: Tensor) -> IsotropicNormal:
        return super().forward(latent, torch.zeros(latent.shape[:-1], dtype=torch.long))


def test_a_decoder_on_nothing_moves_no_responsibility() -> None:
    example = build(CASES["a decoder on N alone"])
    before = actual("meanfield", example)
    example.model.decoders["image"] = Constant(6)
    values = {m: v.flatten(1) for m, v in example.batch.values.items()}
    after = actual("meanfield", example._replace(batch=replace(example.batch, values=values)))
    torch.testing.assert_close(after, before)


def test_enumeration_in_the_model_needs_none() -> None:
    assert cell_posterior("collapsed", build(CASES["diagonal"]).model) is None


@every_case
@pytest.mark.parametrize("objective", ["meanfield", "paper"])
def test_the_guide_gets_cells_and_components_within_them(objective: ObjectiveName, case: Case) -> None:
    example = build(case)
    mixture = example.model.mixture
    posterior = cell_posterior(objective, example.model)
    assert posterior is not None
    logits = posterior(example.posterior(), example.sample(), example.batch)
    assert logits is not None
    r = actual(objective, example).exp()
    assert logits.cell.shape == (7, *case.outcomes)
    cell = torch.softmax(logits.cell.flatten(1), dim=-1)
    torch.testing.assert_close(cell, mixture.sum_to_cells(r))
    if not case.several:
        assert logits.component is None
        return
    assert logits.component is not None
    within = torch.softmax(logits.component, dim=-1)
    for k, c in enumerate(mixture.component_cell.tolist()):
        place = int((mixture.component_cell[:k] == c).sum())
        torch.testing.assert_close(cell[:, c] * within[:, c, place], r[:, k])


def test_gradients_flow_through_the_responsibilities_of_the_paper() -> None:
    example = build(CASES["diagonal"])
    assert actual("paper", example)[:, 0].sum().requires_grad
