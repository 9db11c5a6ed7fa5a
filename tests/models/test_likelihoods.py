"""Likelihoods alone: they sum to one, have the moments that they say, and stay finite."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from likelihood_kinds import DEGREES, DISPERSION, KINDS, SCALE, K, Kind
from scipy import integrate, stats
from torch import Tensor

from causalpima.models.decoders.likelihoods import (
    CategoricalLikelihood,
    NegativeBinomialLikelihood,
    PoissonLikelihood,
    StudentTLikelihood,
    clamp_with_way_back,
    inverse_softplus,
)

every = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
discrete = pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("Student")])


def outputs_of(kind: Kind, *shape: int) -> Tensor:
    return torch.randn(*shape, kind.make(shape[1:]).n_outputs)


@every
def test_log_density_is_the_closed_form(kind: Kind) -> None:
    likelihood, outputs, value = kind.make((3, 2)), outputs_of(kind, 40, 3, 2), kind.draw((40, 3, 2))
    actual = likelihood(outputs)
    assert actual.batch_shape == (40, 3, 2)
    torch.testing.assert_close(actual.log_prob(value), kind.closed(outputs).log_prob(value), rtol=1e-10, atol=1e-10)


@discrete
def test_probabilities_sum_to_one_over_the_support(name: str) -> None:
    kind = KINDS[name]
    support = {"bernoulli": 2, "categorical": K}.get(name, 2000)
    likelihood, outputs = kind.make((3,)), outputs_of(kind, 5, 3)
    values = torch.arange(float(support)).reshape(-1, 1, 1)
    total = likelihood(outputs).log_prob(values.expand(-1, 5, 3)).exp().sum(0)
    torch.testing.assert_close(total, torch.ones(5, 3), rtol=1e-10, atol=0)


@pytest.mark.parametrize(("degrees", "scale"), [(4.0, 0.7), (2.5, 1.3), (30.0, 0.05)])
def test_student_t_is_scipys_and_integrates_to_one(degrees: float, scale: float) -> None:
    likelihood, loc = StudentTLikelihood(scale, degrees), 0.4
    one = likelihood(torch.tensor([loc]))
    x = np.array([-1e4, -3.0, 0.4, 0.41, 2.0, 1e3])
    expected = stats.t(degrees, loc, scale).logpdf(x)
    np.testing.assert_allclose(one.log_prob(torch.tensor(x)).detach().numpy(), expected, rtol=1e-10)
    assert one.variance.item() == pytest.approx(stats.t(degrees, loc, scale).var())

    def density(value: float) -> float:
        return one.log_prob(torch.tensor(value)).exp().item()

    total = sum(integrate.quad(density, *ends, epsabs=1e-11)[0] for ends in ((-np.inf, loc), (loc, np.inf)))
    assert total == pytest.approx(1, abs=1e-8)


def test_negative_binomial_by_its_mean_and_dispersion() -> None:
    outputs = torch.randn(6, 2, 1)
    one = NegativeBinomialLikelihood(1.2, DISPERSION)(outputs)
    mean = (outputs[..., 0] + 1.2).exp()
    torch.testing.assert_close(one.mean, mean)
    torch.testing.assert_close(one.variance, mean + DISPERSION * mean**2)
    by_torch = KINDS["negative binomial"].closed(outputs)
    torch.testing.assert_close(one.mean, by_torch.mean)
    torch.testing.assert_close(one.variance, by_torch.variance)


def test_negative_binomial_can_become_poissons() -> None:
    likelihood, outputs, value = NegativeBinomialLikelihood(), torch.randn(30, 1), torch.poisson(torch.ones(30))
    with torch.no_grad():
        likelihood.raw_dispersion.fill_(-60)
    poisson = PoissonLikelihood()(outputs).log_prob(value)
    torch.testing.assert_close(likelihood(outputs).log_prob(value), poisson, rtol=0, atol=1e-4)


def test_starts_are_where_they_were_put() -> None:
    assert NegativeBinomialLikelihood(dispersion=0.02).dispersion.item() == pytest.approx(0.02)
    assert NegativeBinomialLikelihood(dispersion_shape=(3, 2)).dispersion.shape == (3, 2)
    student = StudentTLikelihood(SCALE, 7.0, scale_floor=0.1)
    assert student.scale.item() == pytest.approx(SCALE)
    assert student.degrees_of_freedom.item() == pytest.approx(7.0)
    rates = PoissonLikelihood(torch.tensor([10.0, 200.0]).log())(torch.zeros(5, 2, 1)).mean
    torch.testing.assert_close(rates, torch.tensor([10.0, 200.0]).expand(5, 2))


@pytest.mark.parametrize("learned", [True, False])
def test_degrees_of_freedom_are_learned_on_request(learned: bool) -> None:
    likelihood = StudentTLikelihood(SCALE, DEGREES, learned)
    trained = {name for name, p in likelihood.named_parameters() if p.requires_grad}
    assert trained == {"raw_scale"} | ({"raw_degrees_of_freedom"} if learned else set())
    with torch.no_grad():
        likelihood.raw_degrees_of_freedom.fill_(-1e3)
        likelihood.raw_scale.fill_(-1e3)
    assert likelihood.degrees_of_freedom.item() == pytest.approx(2.1)
    assert likelihood.scale.item() == pytest.approx(1e-2)
    assert likelihood(torch.zeros(1)).variance.isfinite()


@pytest.mark.float32
@every
@pytest.mark.parametrize("size", [1e2, 1e15])
def test_nothing_overflows_whatever_the_network_puts_out(kind: Kind, size: float) -> None:
    outputs = (size * outputs_of(kind, 50, 3)).requires_grad_()
    likelihood = kind.make((3,))
    one = likelihood(outputs)
    log_prob = one.log_prob(kind.draw((50, 3)))
    assert log_prob.dtype == torch.float32
    assert not log_prob.isnan().any()
    assert not (log_prob == torch.inf).any()
    log_prob.clamp(min=-1e35).sum().backward()
    gradients = [outputs.grad, *(p.grad for p in likelihood.parameters() if p.requires_grad)]
    assert all(g is not None and g.isfinite().all() for g in gradients)


@pytest.mark.float32
@pytest.mark.parametrize("size", [-1e3, 1e3])
def test_a_rate_out_of_bounds_comes_back(size: float) -> None:
    for likelihood in (PoissonLikelihood(), NegativeBinomialLikelihood()):
        outputs = torch.full((1,), size, requires_grad=True)
        (-likelihood(outputs).log_prob(torch.tensor(5.0))).backward()
        assert outputs.grad is not None
        assert outputs.grad.sign().item() == np.sign(size), "a descent step leads back"


def test_clamp_with_a_way_back() -> None:
    value = torch.tensor([-5.0, -5.0, 0.5, 5.0, 5.0], requires_grad=True)
    clamped = clamp_with_way_back(value, -1.0, 1.0)
    assert torch.equal(clamped, torch.tensor([-1.0, -1.0, 0.5, 1.0, 1.0]))
    clamped.backward(torch.tensor([2.0, -2.0, 3.0, 2.0, -2.0]))
    assert value.grad is not None
    assert torch.equal(value.grad, torch.tensor([0.0, -2.0, 3.0, 2.0, 0.0]))


@pytest.mark.parametrize("value", [1e-8, 0.3, 5.0, 800.0])
def test_inverse_softplus(value: float) -> None:
    back = torch.nn.functional.softplus(torch.tensor(inverse_softplus(value)))
    assert back.item() == pytest.approx(value, rel=1e-6)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="n_categories: expected at least 2, got 1"):
        CategoricalLikelihood(1)
    with pytest.raises(ValueError, match=r"dispersion: expected a start > 1e-06, got 0.0; or choose poisson"):
        NegativeBinomialLikelihood(dispersion=0.0)
    with pytest.raises(ValueError, match=r"degrees_of_freedom: expected > 2.1, so that there is a variance, got 2.0"):
        StudentTLikelihood(degrees_of_freedom=2.0)
    for scale, floor in ((0.01, 0.01), (1.0, 0.0), (1.0, -1.0)):
        with pytest.raises(ValueError, match="scale: expected 0 < scale_floor < scale, got"):
            StudentTLikelihood(scale, scale_floor=floor)
