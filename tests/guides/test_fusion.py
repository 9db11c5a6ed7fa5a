"""Product of experts: against the dense formula for every mask, laws of the product, what absence must not do."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.fusion import product_of_experts

LATENT = 3


def make_experts(n_experts: int, batch: int) -> list[GaussianParameters]:
    return [GaussianParameters(torch.randn(batch, LATENT), 2 * torch.randn(batch, LATENT)) for _ in range(n_experts)]


def dense_product(experts: list[GaussianParameters], present: list[bool], prior_expert: bool) -> tuple[Tensor, Tensor]:
    """Mean and variance of one sample, `σ⁻² = Σ σ_m⁻²`, `μ = σ² Σ μ_m σ_m⁻²`, in probabilities."""
    kept = [expert for expert, is_present in zip(experts, present, strict=True) if is_present]
    locs, variances = [e.loc for e in kept], [e.log_variance.exp() for e in kept]
    if prior_expert:
        locs, variances = [*locs, torch.zeros(LATENT)], [*variances, torch.ones(LATENT)]
    variance = 1 / torch.stack([1 / v for v in variances]).sum(0)
    return variance * torch.stack([loc / v for loc, v in zip(locs, variances, strict=True)]).sum(0), variance


@pytest.mark.parametrize("n_experts", [1, 2, 3, 4])
@pytest.mark.parametrize("prior_expert", [True, False])
def test_every_mask_gives_the_analytic_product(n_experts: int, prior_expert: bool) -> None:
    masks = [list(mask) for mask in product([False, True], repeat=n_experts) if prior_expert or any(mask)]
    assert len(masks) == 2**n_experts - (not prior_expert)
    experts = make_experts(n_experts, len(masks))
    fused = product_of_experts(experts, list(torch.tensor(masks).T), prior_expert)
    for row, mask in enumerate(masks):
        one = [GaussianParameters(e.loc[row], e.log_variance[row]) for e in experts]
        loc, variance = dense_product(one, mask, prior_expert)
        torch.testing.assert_close(fused.loc[row], loc, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(fused.log_variance[row].exp(), variance, rtol=1e-12, atol=1e-12)


def test_the_prior_expert_alone_is_the_prior() -> None:
    fused = product_of_experts(make_experts(2, 4), [torch.zeros(4, dtype=torch.bool)] * 2, prior_expert=True)
    assert fused.loc.count_nonzero() == fused.log_variance.count_nonzero() == 0


@pytest.mark.parametrize("n_experts", [1, 2, 3])
def test_without_the_prior_expert_a_sample_without_modalities_is_refused(n_experts: int) -> None:
    present = torch.ones(n_experts, 5, dtype=torch.bool)
    product_of_experts(make_experts(n_experts, 5), list(present))
    present[:, [1, 4]] = False
    with pytest.raises(ValueError, match="at least one modality per sample, got none for 2 samples; leave them"):
        product_of_experts(make_experts(n_experts, 5), list(present))


def test_a_complete_modality_needs_no_mask() -> None:
    experts, mask = make_experts(2, 4), torch.tensor([True, False, True, False])
    without = product_of_experts(experts, [None, mask])
    explicit = product_of_experts(experts, [torch.ones(4, dtype=torch.bool), mask])
    torch.testing.assert_close(without, explicit, rtol=0, atol=0)


@pytest.mark.parametrize("prior_expert", [True, False])
@pytest.mark.parametrize("filler", [0.0, 1e30, -1e300, float("inf"), float("nan")])
def test_an_absent_modality_gets_a_gradient_of_exactly_zero(prior_expert: bool, filler: float) -> None:
    experts, absent = make_experts(3, 4), torch.tensor([False, True, False, True])
    leaves = [part.requires_grad_() for expert in experts for part in expert]
    used = [
        GaussianParameters(*(torch.where(absent.unsqueeze(-1), filler, part) for part in expert)) if m == 1 else expert
        for m, expert in enumerate(experts)
    ]
    filled = [part.detach().requires_grad_() for part in used[1]]
    used[1] = GaussianParameters(*filled)
    fused = product_of_experts(used, [None, ~absent, torch.ones(4, dtype=torch.bool)], prior_expert)
    assert all(part.isfinite().all() for part in fused)
    (fused.loc.square().sum() + fused.log_variance.square().sum()).backward()
    for part in filled:
        assert part.grad is not None
        assert part.grad[absent].count_nonzero() == 0
        assert part.grad.isfinite().all()
        assert (part.grad[~absent] != 0).all()
    others = [*leaves[:2], *leaves[4:]]
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in others)


@pytest.mark.float32
@pytest.mark.parametrize("log_variances", [(-1e4, -1e4), (1e4, 1e4), (-1e4, 1e4), (-200.0, 0.0), (88.0, 89.0)])
def test_extreme_log_variances_do_not_overflow_in_float32(log_variances: tuple[float, float]) -> None:
    loc = torch.tensor([[1.0], [3.0]], requires_grad=True)
    log_variance = torch.tensor(log_variances).unsqueeze(-1).requires_grad_()
    experts = [GaussianParameters(loc[m : m + 1], log_variance[m : m + 1]) for m in range(2)]
    fused = product_of_experts(experts, [None, None])
    share = torch.sigmoid(torch.tensor(log_variances[0]).double() - torch.tensor(log_variances[1]).double())
    assert fused.loc.item() == pytest.approx(1.0 + 2.0 * share.item(), rel=1e-5)
    expected = min(log_variances) + max(share, 1 - share).log().item()
    assert fused.log_variance.item() == pytest.approx(expected, rel=1e-5)
    gradients = torch.autograd.grad(fused.loc.sum() + fused.log_variance.sum(), [loc, log_variance])
    assert all(gradient.isfinite().all() for gradient in gradients)


scales = st.floats(-3, 3)


@given(st.permutations(range(4)), st.integers(0, 2**32))
def test_the_order_of_experts_changes_nothing(order: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    experts, present = make_experts(4, 6), torch.rand(4, 6) < 0.6
    present[0] = True
    fused = product_of_experts(experts, list(present))
    again = product_of_experts([experts[m] for m in order], [present[m] for m in order])
    torch.testing.assert_close(again, fused)


@given(scales, scales)
def test_units_of_latent_space_change_nothing_else(log_unit: float, shift: float) -> None:
    experts, present = make_experts(3, 4), [None, torch.tensor([True, False, True, False]), None]
    fused = product_of_experts(experts, present)
    unit = torch.tensor(log_unit).exp()
    moved = [GaussianParameters(unit * e.loc + shift, e.log_variance + 2 * log_unit) for e in experts]
    other = product_of_experts(moved, present)
    torch.testing.assert_close(other.loc, unit * fused.loc + shift)
    torch.testing.assert_close(other.log_variance, fused.log_variance + 2 * log_unit)


@given(scales)
def test_sharper_experts_win(log_precision: float) -> None:
    experts = make_experts(2, 4)
    sharper = GaussianParameters(experts[0].loc, experts[0].log_variance - 30 + log_precision)
    fused = product_of_experts([sharper, experts[1]], [None, None])
    torch.testing.assert_close(fused.loc, experts[0].loc, rtol=0, atol=1e-6)
    assert (fused.log_variance <= torch.minimum(sharper.log_variance, experts[1].log_variance)).all()


def test_equal_experts_halve_the_variance() -> None:
    (expert,) = make_experts(1, 4)
    fused = product_of_experts([expert, expert], [None, None])
    torch.testing.assert_close(fused.loc, expert.loc)
    torch.testing.assert_close(fused.log_variance.exp(), expert.log_variance.exp() / 2)


def test_products_can_be_taken_in_steps() -> None:
    first, second, third = make_experts(3, 4)
    at_once = product_of_experts([first, second, third], [None] * 3)
    in_steps = product_of_experts([product_of_experts([first, second], [None] * 2), third], [None] * 2)
    torch.testing.assert_close(at_once, in_steps)


def test_one_complete_expert_is_itself() -> None:
    (expert,) = make_experts(1, 4)
    assert product_of_experts([expert], [None]) is expert


def test_leading_dimensions() -> None:
    experts = [GaussianParameters(torch.randn(2, 5, LATENT), torch.randn(2, 5, LATENT)) for _ in range(2)]
    mask = torch.rand(2, 5) < 0.5
    fused = product_of_experts(experts, [None, mask])
    for i in range(2):
        row = product_of_experts([GaussianParameters(e.loc[i], e.log_variance[i]) for e in experts], [None, mask[i]])
        torch.testing.assert_close(fused.loc[i], row.loc)
