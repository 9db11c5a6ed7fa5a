"""A variance per element in what is reported of X, and one for all of them in the objective and in q(N|X)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from small_model import make_batch, make_model
from torch.distributions import Normal

from causalpima.models.batch import Modality
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder, convolutional_decoder, mlp_decoder
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.laws import Linear
from causalpima.models.distributions import Elementwise
from causalpima.models.program import CausalPIMA

LATENT, N_CELLS = 2, 3


def variance(*shape: int) -> DecoderVariance:
    return DecoderVariance("fixed", 0.3, elements=shape)


def law() -> PhysicsDecoder:
    position = torch.linspace(0, 1, 5)
    return PhysicsDecoder(Linear(), Modality("curve", position.shape, "curve", position), N_CELLS, variance(5), LATENT)


DECODERS: dict[str, Callable[[], GaussianDecoder | PhysicsDecoder]] = {
    "mlp": lambda: mlp_decoder(LATENT, (4,), (5,), variance(4)),
    "mlp of images": lambda: mlp_decoder(LATENT, (3, 2), (5,), variance(3, 2)),
    "mlp per cell": lambda: mlp_decoder(LATENT, (4,), (5,), variance(4), N_CELLS),
    "convolutional": lambda: convolutional_decoder(LATENT, (4, 5, 1), (4, 4, 4), variance(4, 5, 1)),
    "law": law,
}


@pytest.fixture(params=DECODERS, ids=str)
def decoder(request: pytest.FixtureRequest) -> GaussianDecoder | PhysicsDecoder:
    return DECODERS[request.param]()


def told(decoder: GaussianDecoder | PhysicsDecoder) -> torch.Tensor:
    """Report a variance of 0.2, and others of the elements; these."""
    decoder.variance.report(0.2)
    decoder.report_elements(50 * torch.rand(decoder.event_shape), torch.full(decoder.event_shape, 50.0))
    return decoder.variance.reported_variance()


@torch.no_grad()
def test_log_density_is_that_of_normals_with_a_deviation_per_element(decoder: GaussianDecoder) -> None:
    scale = told(decoder).sqrt()
    plain = decoder(torch.randn(7, LATENT), torch.arange(N_CELLS)[:, None])
    value, reported = torch.randn(7, *decoder.event_shape), decoder.reported(plain)
    expected = Normal(plain.mean, scale).log_prob(value)
    assert reported.batch_shape == plain.batch_shape
    torch.testing.assert_close(reported.log_prob(value), expected.flatten(len(plain.batch_shape)).sum(-1))
    measured = torch.rand(7, *decoder.event_shape) > 0.4
    found = cast(Elementwise, reported).restricted(measured).log_prob(torch.where(measured, value, torch.nan))
    torch.testing.assert_close(found, (expected * measured).flatten(len(plain.batch_shape)).sum(-1))


@torch.no_grad()
def test_the_objective_has_one_variance_before_and_after(decoder: GaussianDecoder) -> None:
    arguments = torch.randn(7, LATENT), torch.arange(N_CELLS)[:, None]
    value, kind = torch.randn(7, *decoder.event_shape), type(decoder(*arguments))
    decoder.variance.report(0.2)
    before = decoder(*arguments).log_prob(value)
    told(decoder)
    after = decoder(*arguments)
    assert type(after) is kind, "the fused density where there is one"
    assert torch.equal(after.log_prob(value), before)
    assert decoder.variance.scale().shape == ()


def test_without_elements_what_is_reported_is_what_the_objective_has() -> None:
    decoder = mlp_decoder(LATENT, (4,), (5,), DecoderVariance("fixed", 0.3))
    plain = decoder(torch.randn(7, LATENT), torch.tensor(0))
    assert decoder.reported(plain) is plain
    assert not decoder.reports_elements
    decoder.report_elements(torch.ones(4), torch.ones(4))
    assert decoder.variance.reported_variance() is decoder.variance.reported
    assert not any(name.endswith("element") for name in decoder.state_dict())


def test_until_it_is_reported_every_element_has_the_variance_of_training(decoder: GaussianDecoder) -> None:
    reported = decoder.reported(decoder(torch.randn(7, LATENT), torch.zeros(7, dtype=torch.long)))
    torch.testing.assert_close(reported.variance, torch.full_like(reported.mean, 0.3))
    decoder.variance.report(0.2)
    torch.testing.assert_close(decoder.variance.reported_variance(), torch.full(decoder.event_shape, 0.2))


def test_shrinkage_towards_the_variance_of_all_elements() -> None:
    """Never measured: that of all. Measured once: five parts of six of it. Without any error: not zero."""
    decoder = mlp_decoder(LATENT, (4,), (5,), variance(4))
    decoder.variance.report(0.6)
    decoder.report_elements(torch.tensor([0.0, 3.0, 0.0, 800.0]), torch.tensor([0.0, 1.0, 295.0, 395.0]))
    expected = torch.tensor([0.6, (3 + 5 * 0.6) / 6, 0.01, 803 / 400])
    torch.testing.assert_close(decoder.variance.reported_variance(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_perfect_elements_of_a_perfect_fit_have_a_positive_variance(dtype: torch.dtype) -> None:
    found = variance(3).to(dtype)
    found.report(0.0)
    found.report_elements(torch.zeros(3, dtype=torch.float64), torch.full((3,), 1e6, dtype=torch.float64))
    assert found.reported_variance().dtype == dtype
    assert (found.reported_variance() > 0).all()


def test_weights_hold_it_and_those_of_older_versions_are_refused() -> None:
    first, second = DECODERS["mlp"](), DECODERS["mlp"]()
    expected = told(first)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second.variance.reported_variance(), expected)
    old: dict[str, Any] = {name: value for name, value in first.state_dict().items() if not name.endswith("element")}
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "variance.element"'):
        second.load_state_dict(old)


def element_model() -> CausalPIMA:
    """The small model, whose decoders report a variance per element."""
    model = make_model()
    for name, shape in (("image", (3, 2)), ("curve", (4,))):
        decoder = cast(GaussianDecoder, model.decoders[name])
        decoder.variance = DecoderVariance("learned", 0.5, elements=shape)
        told(decoder)
    return model


@torch.no_grad()
@pytest.mark.parametrize("name", ["image", "curve"])
def test_the_model_reports_elements_where_it_decodes_and_where_it_is_asked_to(name: str) -> None:
    model, batch = element_model(), make_batch()
    decoder = cast(GaussianDecoder, model.decoders[name])
    latent, cell = torch.randn(5, LATENT), torch.arange(6)[:, None]
    plain, value = decoder(latent, cell), batch.values[name]
    reported = Normal(plain.mean, decoder.variance.reported_variance().sqrt())
    expected = reported.log_prob(value).flatten(len(plain.batch_shape)).sum(-1)
    torch.testing.assert_close(model.decode(name, latent, cell).log_prob(value), expected)
    torch.testing.assert_close(model.likelihood(name, latent, cell, batch, reported=True).log_prob(value), expected)
    assert torch.equal(model.likelihood(name, latent, cell, batch).log_prob(value), plain.log_prob(value))
