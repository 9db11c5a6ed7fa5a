"""The mixture whose components gradients move: the same densities, the declared prior, floors, saving and loading."""

from __future__ import annotations

import math

import pytest
import torch
from test_mixture import KINDS, MAPS, random_mixture

from causalpima.models.mixture import Covariance, GaussianMixture, TrainableMixture

FLOOR, KAPPA = 0.01, 0.3


def trainable(mixture: GaussianMixture) -> TrainableMixture:
    """With the same components."""
    made = TrainableMixture(
        mixture.n_cells, mixture.latent_dim, mixture.covariance_kind, pseudo_count=KAPPA, variance_floor=FLOOR
    )
    made.replace(mixture.component_loc, mixture.component_scale, mixture.component_cell, mixture.component_log_share)
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", MAPS.values(), ids=MAPS.keys())
def test_everything_that_is_read_is_that_of_the_plain_mixture(cell: list[int], kind: Covariance) -> None:
    plain = random_mixture(cell, 2, kind)
    mixture, value = trainable(plain), torch.randn(7, 2)
    for name in ("component_loc", "component_scale", "component_log_share", "cell_log_share", "cell_components"):
        torch.testing.assert_close(getattr(mixture, name), getattr(plain, name), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(mixture.log_density(value), plain.log_density(value))
    per_component = torch.randn(7, len(cell))
    spread = plain.spread_over_cells(per_component)
    torch.testing.assert_close(mixture.spread_over_cells(per_component), spread, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_means_scales_and_shares_by_the_chain_rule(kind: Covariance) -> None:
    mixture, value = trainable(random_mixture(MAPS["several"], 2, kind)), torch.randn(9, 2)

    def bound(loc: torch.Tensor, scale: torch.Tensor, log_share: torch.Tensor) -> torch.Tensor:
        tril = torch.diag_embed(scale) if kind == "diagonal" else scale
        normal = torch.distributions.MultivariateNormal(loc, scale_tril=tril)
        return torch.logsumexp(normal.log_prob(value.unsqueeze(1)) + log_share, -1).sum()

    torch.logsumexp(mixture.log_density(value) + mixture.component_log_share, -1).sum().backward()
    leaves = [
        part.detach().clone().requires_grad_()
        for part in (mixture.component_loc, mixture.component_scale, mixture.component_log_share)
    ]
    of_loc, of_scale, of_share = torch.autograd.grad(bound(*leaves), leaves)
    torch.testing.assert_close(mixture.free_loc.grad, of_loc)
    assert mixture.free_scale.grad is not None
    if kind == "diagonal":
        torch.testing.assert_close(mixture.free_scale.grad, of_scale * leaves[1])
    else:
        torch.testing.assert_close(mixture.free_scale.grad.tril(-1), of_scale.tril(-1))
        on_diagonal = of_scale.diagonal(dim1=1, dim2=2) * leaves[1].diagonal(dim1=1, dim2=2)
        torch.testing.assert_close(mixture.free_scale.grad.diagonal(dim1=1, dim2=2), on_diagonal)
        assert not mixture.free_scale.grad.triu(1).any()
    per_cell = torch.zeros(3).index_add(0, mixture.component_cell, of_share)[mixture.component_cell]
    torch.testing.assert_close(mixture.free_log_share.grad, of_share - leaves[2].exp() * per_cell)


@pytest.mark.parametrize("kind", KINDS)
def test_the_declared_prior_is_a_sum_over_pseudo_samples(kind: Covariance) -> None:
    mixture = trainable(random_mixture(MAPS["several"], 2, kind))
    covariance = mixture.covariance()
    trace = torch.linalg.inv(covariance).diagonal(dim1=1, dim2=2).sum(-1)
    by_hand = -0.5 * (torch.logdet(covariance) + trace + 2 * math.log(2 * math.pi)) + mixture.component_log_share
    torch.testing.assert_close(mixture.log_prior(), KAPPA * by_hand.sum())
    assert random_mixture(MAPS["several"]).log_prior() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_variances_below_the_floor_are_set_to_it(kind: Covariance) -> None:
    plain = random_mixture([0, 1], 2, kind)
    scale = plain.component_scale.clone()
    scale[1] *= 1e-3
    plain.replace(plain.component_loc, scale, plain.component_cell, plain.component_log_share)
    mixture = trainable(plain)
    mixture.project()
    values = torch.linalg.eigvalsh(mixture.covariance())
    torch.testing.assert_close(values[1], torch.full((2,), FLOOR))
    torch.testing.assert_close(mixture.component_scale[0], plain.component_scale[0], rtol=1e-12, atol=1e-12)


def test_shares_are_fixed_while_every_cell_has_one_gaussian() -> None:
    assert not trainable(random_mixture(MAPS["one each"])).free_log_share.requires_grad
    assert trainable(random_mixture(MAPS["several"])).free_log_share.requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_saved_and_loaded_bit_for_bit_whatever_the_number_of_components(kind: Covariance) -> None:
    mixture = trainable(random_mixture(MAPS["several"], 2, kind))
    other = TrainableMixture(3, 2, kind, pseudo_count=KAPPA, variance_floor=FLOOR)
    other.load_state_dict(mixture.state_dict())
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in mixture.state_dict().items())
    assert torch.equal(other.cell_log_share, mixture.cell_log_share)
    assert {name for name, _ in other.named_parameters()} == {"free_loc", "free_scale", "free_log_share"}


def test_other_numbers_of_the_cells_change_no_parameter() -> None:
    mixture = trainable(random_mixture(MAPS["several"]))
    before, cell = mixture.state_dict(), mixture.component_cell.clone()
    mixture.relabel(torch.tensor([1, 2, 0]))
    assert torch.equal(mixture.component_cell, (cell + 1) % 3)
    assert all(torch.equal(mixture.state_dict()[name], before[name]) for name in before if name.startswith("free"))
    torch.testing.assert_close(mixture.sum_to_cells(mixture.component_log_share.exp()), torch.ones(3))
