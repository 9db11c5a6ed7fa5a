"""The three objectives with one block of Z per modality, some of them absent: traces, closed forms, brute force.

N1, N2 -> Z_image -> X_image      N2, N3 -> Z_curve -> X_curve      N1, N3 -> Z_probe -> X_probe
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import pytest
import torch
from masked_example import SHAPES, make_batch, make_guide, make_model
from masked_mixture import LATENT, OUTCOMES, VISIBLE
from pyro.infer import TraceEnum_ELBO
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from causalpima.guides.guide import Guide
from causalpima.inference.objectives import closed_form, responsibilities
from causalpima.inference.objectives.closed_form import ELBOTerms
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior, components
from causalpima.models.batch import Batch
from causalpima.models.block_mixture import BlockMixture
from causalpima.models.mixture import Covariance
from causalpima.models.program import CausalPIMA, CellSites

OBJECTIVES: list[ObjectiveName] = ["collapsed", "meanfield", "paper"]
KINDS: list[Covariance] = ["diagonal", "full"]


def pair(objective: ObjectiveName, sites: CellSites = "cells", kind: Covariance = "full") -> tuple[CausalPIMA, Guide]:
    model = make_model(sites, kind)
    return model, make_guide(cell_posterior(objective, model), sites)


def drawn(guide: Guide, batch: Batch) -> Tensor:
    """The z that the guide draws first, `[N, J]`: one block after the other."""
    torch.manual_seed(3)
    q = guide.encode(batch)
    noise = torch.cat([torch.randn(len(batch), LATENT) for _ in SHAPES], dim=-1)
    torch.manual_seed(3)
    return q.loc + q.scale * noise


def traced(objective: ObjectiveName, model: CausalPIMA, guide: Guide, batch: Batch) -> Tensor:
    torch.manual_seed(3)
    return make_elbo(objective).evaluate(model, guide, batch).elbo


def closed(objective: ObjectiveName, model: CausalPIMA, guide: Guide, batch: Batch) -> ELBOTerms:
    z, q, parts = drawn(guide, batch), guide.encode(batch), components(model)
    present = model.mixture.present(batch)
    likelihoods = {m: responsibilities.log_likelihood(model, m, z, batch) for m in SHAPES}
    if objective == "meanfield":
        return closed_form.meanfield(q.loc, q.scale, parts, likelihoods, present=present)
    form = closed_form.collapsed if objective == "collapsed" else closed_form.paper
    return form(z, q.loc, q.scale, parts, likelihoods, present)


def gradients(value: Tensor, *modules: torch.nn.Module) -> dict[str, Tensor]:
    named = {f"{i}.{name}": p for i, module in enumerate(modules) for name, p in module.named_parameters()}
    found = torch.autograd.grad(value, list(named.values()), allow_unused=True)
    return {name: torch.zeros(1) if g is None else g for name, g in zip(named, found, strict=True)}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("sites", ["cells", "nodes"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "some absent"])
def test_traces_equal_the_closed_form(
    objective: ObjectiveName, sites: CellSites, kind: Covariance, complete: bool
) -> None:
    model, guide = pair(objective, sites, kind)
    batch = make_batch(complete)
    found, expected = traced(objective, model, guide, batch), closed(objective, model, guide, batch).total.sum()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    one, other = gradients(found, model, guide), gradients(expected, model, guide)
    for name, gradient in one.items():
        torch.testing.assert_close(gradient, other[name].expand_as(gradient), rtol=1e-8, atol=1e-8, msg=name)


@pytest.mark.parametrize("sites", ["cells", "nodes"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_collapsed_bound_is_what_pyro_computes(sites: CellSites, kind: Covariance) -> None:
    model, guide = pair("collapsed", sites, kind)
    found = traced("collapsed", model, guide, make_batch())
    torch.manual_seed(3)
    stock = -TraceEnum_ELBO(max_plate_nesting=1).differentiable_loss(model, guide, make_batch())
    torch.testing.assert_close(found, stock, rtol=0, atol=1e-10)
    one, other = gradients(found, model, guide), gradients(stock, model, guide)
    for name, gradient in one.items():
        torch.testing.assert_close(gradient, other[name], rtol=1e-8, atol=1e-8, msg=name)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_named_terms_of_traces_are_those_of_the_closed_form(objective: ObjectiveName) -> None:
    model, guide = pair(objective)
    torch.manual_seed(3)
    terms = make_elbo(objective).evaluate(model, guide, make_batch()).terms
    assert terms is not None
    expected = closed(objective, model, guide, make_batch())
    for name in ("cells", "latent", "cell_entropy", "latent_entropy"):
        torch.testing.assert_close(getattr(terms, name), getattr(expected, name).detach())
    for name, value in expected.reconstruction.items():
        torch.testing.assert_close(terms.reconstruction[name], value.detach())


def level(cell: Tensor, nodes: tuple[int, ...]) -> int:
    index = 0
    for node in nodes:
        index = index * OUTCOMES[node] + int(cell[node])
    return index


def gaussian_of(mixture: BlockMixture, name: str, cell: Tensor) -> MultivariateNormal:
    block, row = mixture.block(name), level(cell, VISIBLE[name])
    scale = block.component_scale[row]
    return MultivariateNormal(block.component_loc[row], scale_tril=scale if scale.dim() == 2 else torch.diag(scale))


def by_hand(objective: ObjectiveName, model: CausalPIMA, guide: Guide, batch: Batch) -> Tensor:
    """The bound over the whole joint table, one sample and one cell after the other, absent modalities skipped."""
    mixture, joint = model.mixture, model.graph.log_joint()
    assert isinstance(mixture, BlockMixture)
    z, total = drawn(guide, batch), torch.zeros(())
    for n in range(len(batch)):
        seen = [m for m in SHAPES if bool(batch.has(m)[n])]
        q, zs, decoded = {}, {}, {}
        for row, m in enumerate(SHAPES):
            if m in seen:
                encoded = guide.encoders[m](batch.values[m][n : n + 1])
                q[m] = Normal(encoded.loc[0], encoded.scale[0])
                zs[m] = z[n, row * LATENT : (row + 1) * LATENT]
        at_draw, expected, likelihood, weight = [], [], [], []
        for cell in torch.cartesian_prod(*map(torch.arange, OUTCOMES)):
            p = {m: gaussian_of(mixture, m, cell) for m in seen}
            weight.append(joint[tuple(cell)])
            at_draw.append(sum((p[m].log_prob(zs[m]) for m in seen), torch.zeros(())))
            expected.append(sum((expectation(p[m], q[m]) for m in seen), torch.zeros(())))
            for m in seen:
                decoded[m] = model.decoders[m](zs[m], torch.tensor(level(cell, VISIBLE[m])))
            likelihood.append(
                sum(
                    (Normal(decoded[m].mean, decoded[m].scale).log_prob(batch.values[m][n]).sum() for m in seen),
                    torch.zeros(()),
                )
            )
        w, a, e, x = (torch.stack(column) for column in (weight, at_draw, expected, likelihood))
        if objective == "collapsed":
            log_q = sum((q[m].log_prob(zs[m]).sum() for m in seen), torch.zeros(()))
            total = total + torch.logsumexp(w + a + x, 0) - log_q
            continue
        log_r = torch.log_softmax(w + (e if objective == "meanfield" else a), 0)
        entropy = sum((q[m].entropy().sum() for m in seen), torch.zeros(()))
        total = total + (log_r.exp() * (w + e + x - log_r)).sum() + entropy
    return total


def expectation(p: MultivariateNormal, q: Normal) -> Tensor:
    """E_q log p(z) for a diagonal q."""
    return p.log_prob(q.loc) - 0.5 * (p.precision_matrix.diagonal() * q.scale.square()).sum()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_traces_equal_brute_force(objective: ObjectiveName, kind: Covariance) -> None:
    model, guide = pair(objective, kind=kind)
    found, expected = (f(objective, model, guide, make_batch()) for f in (traced, by_hand))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_brute_force_tells_another_mask_apart() -> None:
    """Negative control: the same parameters, but the first two modalities see each other's nodes."""
    model, guide = pair("collapsed", kind="diagonal")
    assert isinstance(model.mixture, BlockMixture)
    level = model.mixture.level_of_cell
    level[:2] = level[:2].flip(0)
    found, expected = (f("collapsed", model, guide, make_batch()) for f in (traced, by_hand))
    assert abs(float((found - expected).detach())) > 0.1


def changed(batch: Batch, change: Callable[[str, Tensor], Tensor]) -> Batch:
    """The batch with other filler in the rows of absent modalities."""
    values: Mapping[str, Tensor] = {
        m: torch.where(batch.has(m).reshape(-1, *[1] * (x.dim() - 1)), x, change(m, x)) for m, x in batch.values.items()
    }
    return dataclasses.replace(batch, values=values)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_stands_in_place_of_an_absent_modality_changes_nothing(objective: ObjectiveName) -> None:
    model, guide = pair(objective)
    batch = make_batch()
    other = changed(batch, lambda _, x: 100.0 + x)
    one, two = (traced(objective, model, guide, b).detach() for b in (batch, other))
    assert float(one) == float(two)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_modality_that_is_absent_everywhere_has_no_gradient(objective: ObjectiveName) -> None:
    model, guide = pair(objective)
    batch = make_batch().without("image")
    slopes = gradients(traced(objective, model, guide, batch), model.decoders["image"], guide.encoders["image"])
    assert all(bool((slope == 0).all()) for slope in slopes.values())
    others = gradients(traced(objective, model, guide, batch), model.decoders["probe"], guide.encoders["probe"])
    assert any(bool((slope != 0).any()) for slope in others.values())


def test_a_sample_without_any_modality_adds_nothing() -> None:
    """Its bound is the log of the sum of p(N): zero."""
    for objective in OBJECTIVES:
        model, guide = pair(objective)
        batch = make_batch()
        for name in SHAPES:
            batch = batch.without(name)
        assert float(traced(objective, model, guide, batch).detach()) == pytest.approx(0.0, abs=1e-12)


def test_renamed_outcomes_take_gaussians_and_heads_along() -> None:
    """The last node's outcomes exchanged: everything but p(N) is that of the cell's old number."""
    model, guide = pair("collapsed")
    batch, cells = make_batch(), torch.arange(12)
    permutation = cells.reshape(2, 3, 2).flip(-1).flatten()
    z, present = drawn(guide, batch).detach(), model.mixture.present(batch)

    def given_cells() -> Tensor:
        curve = responsibilities.log_likelihood(model, "curve", z, batch)
        return model.mixture.log_density(z, present) + curve

    before = given_cells()
    model.relabel(permutation)
    torch.testing.assert_close(given_cells()[:, permutation], before)
