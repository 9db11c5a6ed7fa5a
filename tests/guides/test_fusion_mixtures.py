"""Mixtures of experts and of products, and concatenation: against brute force for every mask; what absence may do."""

from __future__ import annotations

from itertools import combinations, product

import pytest
import torch
from torch.distributions import Independent, Normal

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.fusion import (
    FUSIONS,
    ConcatenatedEncodings,
    Fusion,
    mixture_of_experts,
    mixture_of_products,
    product_of_experts,
)
from causalpima.guides.graph import MixtureParameters

LATENT = 2


def make_experts(n_experts: int, batch: int) -> list[GaussianParameters]:
    return [GaussianParameters(torch.randn(batch, LATENT), torch.randn(batch, LATENT)) for _ in range(n_experts)]


def density(name: str, experts: list[GaussianParameters], has: tuple[bool, ...], prior: bool, z: torch.Tensor) -> float:
    """q(z | X) of one sample, one set of modalities after the other, each product by precisions."""
    there = [m for m, is_there in enumerate(has) if is_there]
    sizes = [1] if name == "moe" else range(1, len(there) + 1)
    subsets = [s for size in sizes for s in combinations(there, size)] or [()]
    values = []
    for subset in subsets:
        locs, variances = [experts[m].loc for m in subset], [experts[m].log_variance.exp() for m in subset]
        if prior:
            locs, variances = [*locs, torch.zeros(LATENT)], [*variances, torch.ones(LATENT)]
        variance = 1 / torch.stack([1 / v for v in variances]).sum(0)
        loc = variance * sum(m / v for m, v in zip(locs, variances, strict=True))
        values.append(Independent(Normal(loc, variance.sqrt()), 1).log_prob(z).exp())
    return float(sum(values) / len(values))


@pytest.mark.parametrize("name", ["moe", "mopoe"])
@pytest.mark.parametrize("n_experts", [1, 2, 3])
@pytest.mark.parametrize("prior_expert", [True, False])
def test_every_mask_gives_the_mixture_by_hand(name: str, n_experts: int, prior_expert: bool) -> None:
    masks = [mask for mask in product([False, True], repeat=n_experts) if prior_expert or any(mask)]
    experts, z = make_experts(n_experts, len(masks)), torch.randn(len(masks), LATENT)
    fused = FUSIONS[name](n_experts, LATENT, prior_expert)(experts, list(torch.tensor(masks).T))
    for row, mask in enumerate(masks):
        one = [GaussianParameters(e.loc[row], e.log_variance[row]) for e in experts]
        expected = density(name, one, mask, prior_expert, z[row])
        assert fused.log_density(z)[row].exp().item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["moe", "mopoe"])
def test_without_masks_all_weights_are_alike(name: str) -> None:
    fused = FUSIONS[name](3, LATENT, True)(make_experts(3, 4), [None] * 3)
    assert isinstance(fused, MixtureParameters)
    n_parts = 3 if name == "moe" else 7
    torch.testing.assert_close(fused.log_weights.exp(), torch.full((4, n_parts), 1 / n_parts))


@pytest.mark.parametrize("name", ["moe", "mopoe"])
@pytest.mark.parametrize("prior_expert", [True, False])
def test_one_modality_is_the_product(name: str, prior_expert: bool) -> None:
    experts = make_experts(1, 4)
    fused = FUSIONS[name](1, LATENT, prior_expert)(experts, [None])
    assert isinstance(fused, GaussianParameters)
    torch.testing.assert_close(fused, product_of_experts(experts, [None], prior_expert), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["moe", "mopoe"])
def test_equal_experts_are_one_of_them_or_products_of_them(name: str) -> None:
    (expert,) = make_experts(1, 4)
    fused, z = FUSIONS[name](2, LATENT, False)([expert, expert], [None, None]), torch.randn(4, LATENT)
    both = product_of_experts([expert, expert], [None, None])
    one, two = expert.log_density(z).exp(), both.log_density(z).exp()
    torch.testing.assert_close(fused.log_density(z).exp(), one if name == "moe" else (2 * one + two) / 3)


@pytest.mark.parametrize("name", ["moe", "mopoe", "concat"])
def test_a_sample_without_any_modality_needs_the_prior_expert(name: str) -> None:
    experts, present = make_experts(2, 3), [torch.tensor([True, False, False]), torch.tensor([False, False, True])]
    with pytest.raises(ValueError, match=r"expected at least one modality per sample, got none for 1 samples; leave"):
        FUSIONS[name](2, LATENT, False)(experts, present)
    fused, z = FUSIONS[name](2, LATENT, True)(experts, present), torch.randn(3, LATENT)
    prior = GaussianParameters(torch.zeros(3, LATENT), torch.zeros(3, LATENT))
    torch.testing.assert_close(fused.log_density(z)[1], prior.log_density(z)[1])
    torch.testing.assert_close((fused.loc[1], fused.scale[1]), (torch.zeros(LATENT), torch.ones(LATENT)))


@pytest.mark.parametrize("name", ["moe", "mopoe", "concat"])
@pytest.mark.parametrize("prior_expert", [True, False])
@pytest.mark.parametrize("filler", [0.0, 1e30, float("inf"), float("nan")])
def test_an_absent_modality_gets_a_gradient_of_exactly_zero(name: str, prior_expert: bool, filler: float) -> None:
    experts, absent = make_experts(3, 4), torch.tensor([False, True, False, True])
    filled = [torch.where(absent[:, None], filler, part).requires_grad_() for part in experts[1]]
    used = [experts[0], GaussianParameters(*filled), experts[2]]
    fusion = FUSIONS[name](3, LATENT, prior_expert)
    fused = fusion(used, [None, ~absent, torch.tensor([True, False, True, True])])
    z = fused.draw()
    (fused.log_density(z).sum() + z.square().sum() + fused.loc.square().sum() + fused.scale.sum()).backward()
    assert all(part.grad is not None and part.grad.isfinite().all() for part in filled)
    assert all(part.grad is not None and part.grad[absent].count_nonzero() == 0 for part in filled)
    assert all(part.grad is not None and part.grad[~absent].count_nonzero() > 0 for part in filled)


@pytest.mark.parametrize("name", ["moe", "mopoe"])
def test_the_order_of_experts_changes_nothing(name: str) -> None:
    experts, present, order = make_experts(3, 6), torch.rand(3, 6) < 0.6, [2, 0, 1]
    present[0] = True
    fusion, z = FUSIONS[name](3, LATENT, False), torch.randn(6, LATENT)
    fused, again = fusion(experts, list(present)), fusion([experts[m] for m in order], [present[m] for m in order])
    torch.testing.assert_close(again.log_density(z), fused.log_density(z))
    torch.testing.assert_close((again.loc, again.scale), (fused.loc, fused.scale))


def test_too_many_modalities_for_all_sets_of_them() -> None:
    assert len(mixture_of_products(8, LATENT, False).subsets) == 255
    with pytest.raises(ValueError, match=r"guide.fusion: expected at most 8 modalities for mopoe, .* got 9; use poe"):
        FUSIONS["mopoe"](9, LATENT, False)
    assert len(mixture_of_experts(9, LATENT, False).subsets) == 9


def test_concatenation_sees_what_is_there_by_hand() -> None:
    fusion, experts = ConcatenatedEncodings(2, LATENT), make_experts(2, 3)
    present = torch.tensor([True, False, True])
    shown = torch.where(present[:, None], torch.cat(experts[1], dim=-1), 0.0)
    inputs = torch.cat([*experts[0], torch.ones(3, 1), shown, present[:, None].double()], dim=-1)
    first, _, last = fusion.network.network.children()
    expected = last(torch.relu(first(inputs)))
    torch.testing.assert_close(torch.cat(fusion(experts, [None, present]), dim=-1), expected)


def test_concatenation_with_the_prior_expert_is_a_product_with_it() -> None:
    torch.manual_seed(1)
    without = ConcatenatedEncodings(2, LATENT)
    torch.manual_seed(1)
    fused = ConcatenatedEncodings(2, LATENT, prior_expert=True)
    experts = make_experts(2, 3)
    prior = GaussianParameters(torch.zeros(3, LATENT), torch.zeros(3, LATENT))
    expected = product_of_experts([without(experts, [None, None]), prior], [None, None])
    torch.testing.assert_close(fused(experts, [None, None]), expected)


@pytest.mark.parametrize("name", list(FUSIONS))
def test_who_says_what_of_being_alone(name: str) -> None:
    fusion: Fusion = FUSIONS[name](2, LATENT, False)
    assert fusion.teaches_alone is (name in ("moe", "mopoe"))
