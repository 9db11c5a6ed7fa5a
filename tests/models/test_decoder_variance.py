"""The variance of a decoder: analytic, learned or fixed, floored in training and not in what is reported."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal

from causalpima.models.decoders.base import DecoderVariance, VarianceKind


@pytest.mark.parametrize("kind", ["analytic", "learned", "fixed"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_variance_starts_at_its_initial_value(kind: VarianceKind, dtype: torch.dtype) -> None:
    variance = DecoderVariance(kind, 0.36).to(dtype)
    assert variance.scale().dtype == dtype
    assert variance.scale().dim() == 0
    assert variance.scale().item() == pytest.approx(0.6)
    assert variance.scale().requires_grad == (kind == "learned") == bool(list(variance.parameters()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_analytic_variance_is_a_plain_mean_at_first_and_then_a_running_one(dtype: torch.dtype) -> None:
    variance = DecoderVariance("analytic", 1.0, decay=0.75).to(dtype)
    seen: list[float] = []
    for squared_error, n_elements in ((3.0, 10), (0.5, 20), (80.0, 16), (2.0, 4), (7.0, 3)):
        variance.observe(torch.tensor(squared_error), torch.tensor(n_elements))
        seen.append(squared_error / n_elements)
        expected = sum(seen) / len(seen) if len(seen) <= 4 else 0.75 * sum(seen[:4]) / 4 + 0.25 * seen[4]
        assert variance.training_variance().dtype == dtype
        assert variance.training_variance().item() == pytest.approx(expected)


def test_analytic_variance_converges_to_the_maximiser_of_the_likelihood() -> None:
    variance, error = DecoderVariance("analytic", 1.0), 0.2 * torch.randn(500)
    for _ in range(300):
        variance.observe(error.square().sum(), torch.tensor(500))
    scale = variance.scale().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(Normal(0.0, scale).log_prob(error).sum(), scale)
    assert abs(gradient.item()) < 1e-6
    assert not variance.scale().requires_grad, "detached"


def test_a_batch_without_the_modality_leaves_the_variance_alone() -> None:
    variance = DecoderVariance("analytic", 0.4)
    for squared_error, n_elements, expected in ((0.0, 0, 0.4), (3.0, 10, 0.3), (0.0, 0, 0.3), (1.0, 10, 0.2)):
        variance.observe(torch.tensor(squared_error), torch.tensor(n_elements))
        assert variance.running.item() == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["learned", "fixed"])
def test_only_an_analytic_variance_takes_note(kind: VarianceKind) -> None:
    variance = DecoderVariance(kind, 0.4)
    variance.observe(torch.tensor(90.0), torch.tensor(3))
    assert variance.training_variance().item() == pytest.approx(0.4)


@pytest.mark.parametrize(("kind", "expected"), [("analytic", 0.05), ("learned", 0.05), ("fixed", 0.01)])
def test_the_floor_holds_while_training_for_what_moves(kind: VarianceKind, expected: float) -> None:
    assert DecoderVariance(kind, 0.01, floor=0.05).training_variance().item() == pytest.approx(expected)


@pytest.mark.parametrize("log_variance", [-6.0, math.log(0.05), -1.0])
@pytest.mark.parametrize("rises", [True, False])
def test_a_learned_variance_climbs_back_from_below_the_floor_and_does_not_sink_further(
    log_variance: float, rises: bool
) -> None:
    variance = DecoderVariance("learned", math.exp(log_variance), floor=0.05)
    (-variance.training_variance() if rises else variance.training_variance()).backward()
    assert variance.log_variance.grad is not None
    sign = -1 if rises else 1
    held = log_variance < math.log(0.05) and not rises
    assert variance.log_variance.grad.item() == pytest.approx(0.0 if held else sign * math.exp(log_variance))


def test_a_learned_variance_ends_at_the_larger_of_optimum_and_floor() -> None:
    for true_scale, expected in ((0.5, 0.25), (0.1, 0.05)):
        variance = DecoderVariance("learned", 0.06, floor=0.05)
        optimiser = torch.optim.Adam(variance.parameters(), lr=0.05)
        error = torch.tensor([true_scale, -true_scale])
        for _ in range(120):
            optimiser.zero_grad()
            (error.square().sum() / variance.scale().square() + 4 * variance.scale().log()).backward()
            optimiser.step()
        assert variance.training_variance().item() == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("kind", ["analytic", "learned", "fixed"])
def test_what_is_reported_has_no_floor_and_training_can_go_on(kind: VarianceKind) -> None:
    variance = DecoderVariance(kind, 0.3, floor=0.05)
    variance.report(torch.tensor(0.002))
    assert variance.scale().item() ** 2 == pytest.approx(0.002)
    assert variance.training_variance().item() == pytest.approx(0.3), "both are kept"
    restored = DecoderVariance(kind, 1.0, floor=0.05)
    restored.load_state_dict(variance.state_dict())
    assert torch.equal(restored.scale(), variance.scale())
    variance.resume_training()
    assert variance.scale().item() ** 2 == pytest.approx(0.3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_perfect_fit_reports_a_positive_variance(dtype: torch.dtype) -> None:
    variance = DecoderVariance().to(dtype)
    variance.report(0.0)
    assert variance.scale() > 0
    assert variance.scale().log().isfinite()


@pytest.mark.parametrize(("initial", "floor"), [(0.0, 1e-4), (-1.0, 1e-4), (1.0, 0.0)])
def test_variances_that_are_not_positive_are_refused(initial: float, floor: float) -> None:
    with pytest.raises(ValueError, match="decoder variance: expected initial > 0 and floor > 0, got"):
        DecoderVariance(initial=initial, floor=floor)
