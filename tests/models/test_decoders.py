"""Laws that every Gaussian decoder keeps, and the choice of heads by cell."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder, convolutional_decoder, mlp_decoder
from causalpima.models.distributions import IsotropicNormal, LinearNormal

N_CELLS, LATENT = 4, 2

Build = Callable[[], GaussianDecoder]

SHARED: dict[str, Build] = {
    "mlp": lambda: mlp_decoder(LATENT, (3, 2), (5, 7), learned()),
    "linear": lambda: mlp_decoder(LATENT, (6,), (), learned()),
    "convolutional": lambda: convolutional_decoder(LATENT, (8, 12, 3), (6, 8, 5), learned()),
    "convolutional, odd sides": lambda: convolutional_decoder(LATENT, (27, 31, 1), (5, 6, 4), learned()),
}
PER_CELL: dict[str, Build] = {
    "mlp per cell": lambda: mlp_decoder(LATENT, (3, 2), (5,), learned(), N_CELLS),
    "linear per cell": lambda: mlp_decoder(LATENT, (6,), (), learned(), N_CELLS),
    "convolutional per cell": lambda: convolutional_decoder(LATENT, (5, 7, 2), (6, 8, 5), learned(), N_CELLS),
}
ALL = SHARED | PER_CELL
every = pytest.mark.parametrize("build", ALL.values(), ids=ALL.keys())
per_cell = pytest.mark.parametrize("build", PER_CELL.values(), ids=PER_CELL.keys())


def learned() -> DecoderVariance:
    return DecoderVariance("learned", 0.3)


# Shapes of latent and cell as they arise: plain, enumerated over one and over two sites, drawn, in parallel draws,
# and one node drawn while another is enumerated.
SHAPES = {
    "plain": ((5,), ()),
    "enumerated": ((5,), (N_CELLS, 1)),
    "two enumerated sites": ((5,), (2, 2, 1)),
    "drawn": ((5,), (5,)),
    "one sample": ((1,), (1,)),
    "one sample, enumerated": ((1,), (N_CELLS, 1)),
    "parallel draws": ((3, 5), (3, 5)),
    "one cell per draw": ((3, 5), (3, 1)),
    "parallel draws, enumerated": ((3, 5), (N_CELLS, 1, 1)),
    "drawn and enumerated": ((5,), (2, 5)),
    "enumerated latent": ((N_CELLS, 5), (N_CELLS, 1)),
}
shapes = pytest.mark.parametrize(("batch", "cells"), SHAPES.values(), ids=SHAPES.keys())


def arguments(batch: tuple[int, ...], cells: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    return torch.randn(*batch, LATENT), torch.randint(N_CELLS, cells)


@every
@shapes
def test_batch_shape_is_that_of_the_interface(build: Build, batch: tuple[int, ...], cells: tuple[int, ...]) -> None:
    decoder, (latent, cell) = build(), arguments(batch, cells)
    distribution = decoder(latent, cell)
    expected = torch.broadcast_shapes(batch, cells) if decoder.depends_on_cell else batch
    assert distribution.batch_shape == expected
    assert distribution.event_shape == decoder.event_shape
    value = torch.randn(batch[-1], *decoder.event_shape)
    log_prob = distribution.log_prob(value)
    assert log_prob.shape == expected
    scale = math.sqrt(0.3)
    event_dims = tuple(range(-len(decoder.event_shape), 0))
    reference = Normal(distribution.mean, scale).log_prob(value).sum(event_dims)
    torch.testing.assert_close(log_prob, reference, rtol=1e-11, atol=1e-11)


@every
@shapes
def test_one_sample_at_a_time_gives_the_same(build: Build, batch: tuple[int, ...], cells: tuple[int, ...]) -> None:
    decoder, (latent, cell) = build(), arguments(batch, cells)
    mean = decoder(latent, cell).mean
    whole = mean.shape[: mean.dim() - len(decoder.event_shape)]
    rows = latent.expand(*whole, LATENT).reshape(-1, LATENT)
    chosen = (cell if decoder.depends_on_cell else torch.zeros((), dtype=torch.long)).expand(whole).reshape(-1)
    by_loop = torch.stack([decoder(row, one).mean for row, one in zip(rows, chosen, strict=True)])
    torch.testing.assert_close(mean, by_loop.reshape(mean.shape), rtol=1e-11, atol=1e-11)


@per_cell
def test_each_cell_has_a_head_of_its_own(build: Build) -> None:
    decoder, latent = build(), torch.randn(5, LATENT)
    means = decoder(latent, torch.arange(N_CELLS).unsqueeze(-1)).mean
    assert means.flatten(1).unique(dim=0).shape[0] == N_CELLS
    heads = decoder.head(decoder.body(latent)).reshape(5, N_CELLS, *decoder.event_shape)
    torch.testing.assert_close(means, heads.movedim(1, 0))


@per_cell
def test_a_cell_moves_its_own_head_alone(build: Build) -> None:
    decoder = build()
    decoder(torch.randn(5, LATENT), torch.full((5,), 2)).mean.square().sum().backward()
    last = [m for m in decoder.modules() if isinstance(m, torch.nn.Linear | torch.nn.ConvTranspose2d)][-1]
    assert last.bias is not None
    assert last.bias.grad is not None
    gradient = last.bias.grad.reshape(N_CELLS, -1)
    assert (gradient[2] != 0).any()
    assert gradient[[0, 1, 3]].count_nonzero() == 0


@pytest.mark.parametrize("build", SHARED.values(), ids=SHARED.keys())
def test_without_heads_per_cell_the_cell_changes_nothing(build: Build) -> None:
    decoder, latent = build(), torch.randn(5, LATENT)
    first, second = (decoder(latent, torch.full((5,), cell)).mean for cell in (0, 3))
    assert torch.equal(first, second)


def test_a_linear_head_on_z_alone_is_fused() -> None:
    latent, cell = arguments((5,), ())
    assert isinstance(SHARED["mlp"]()(latent, cell), LinearNormal)
    assert isinstance(SHARED["convolutional"]()(latent, cell), IsotropicNormal)
    assert isinstance(PER_CELL["mlp per cell"]()(latent, cell), IsotropicNormal)


@every
def test_gradients_reach_every_parameter(build: Build) -> None:
    decoder = build()
    latent = torch.randn(40, LATENT, requires_grad=True)
    distribution = decoder(latent, torch.arange(N_CELLS).unsqueeze(-1))
    distribution.log_prob(torch.randn(40, *decoder.event_shape)).sum().backward()
    assert [name for name, p in decoder.named_parameters() if p.grad is None or p.grad.count_nonzero() == 0] == []
    assert latent.grad is not None
    assert (latent.grad != 0).all()


@every
def test_state_makes_the_same_decoder(build: Build) -> None:
    decoder, other, (latent, cell) = build(), build(), arguments((5,), (5,))
    assert not torch.equal(decoder(latent, cell).mean, other(latent, cell).mean)
    decoder.variance.report(0.02)
    other.load_state_dict(decoder.state_dict())
    value = torch.randn(5, *decoder.event_shape)
    assert torch.equal(decoder(latent, cell).log_prob(value), other(latent, cell).log_prob(value))


@every
def test_in_float32(build: Build) -> None:
    decoder = build().float()
    latent, cell = torch.randn(5, LATENT, dtype=torch.float32), torch.arange(N_CELLS).unsqueeze(-1)
    log_prob = decoder(latent, cell).log_prob(torch.zeros(5, *decoder.event_shape, dtype=torch.float32))
    assert log_prob.dtype == torch.float32
    double = decoder.double()(latent.double(), cell).log_prob(torch.zeros(5, *decoder.event_shape))
    torch.testing.assert_close(log_prob.double(), double, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("height", [1, 4, 5, 27])
def test_images_of_any_size_fill_their_frame(height: int) -> None:
    decoder = convolutional_decoder(LATENT, (height, 31, 2), (8, 8, 8), learned())
    mean = decoder(torch.randn(20, LATENT), torch.tensor(0)).mean
    assert mean.shape == (20, height, 31, 2)
    assert mean.std(0).min() > 0, "every pixel depends on Z"


@pytest.mark.parametrize(("shape", "channels"), [((8, 8), (2, 2, 2)), ((8, 8, 3), (2, 2)), ((64,), (2, 2, 2))])
def test_what_is_no_image_is_refused(shape: tuple[int, ...], channels: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"convolutional decoder: expected \(height, width, channel\) and 3 channel"):
        convolutional_decoder(LATENT, shape, channels, learned())


# From the log-likelihood of a batch to the variance


def likelihood(decoder: GaussianDecoder, value: Tensor, latent: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of log p over samples, and the squared error behind it."""
    distribution = decoder(latent, cell)
    return distribution.log_prob(value).sum(), (value - distribution.mean).square().sum()


@every
def test_decoders_take_the_squared_error_out_of_the_log_likelihood(build: Build) -> None:
    decoder, (latent, cell) = build(), arguments((5,), (5,))
    decoder.variance = DecoderVariance("analytic", 0.3)
    value = torch.randn(5, *decoder.event_shape)
    log_likelihood, squared_error = likelihood(decoder, value, latent, cell)
    decoder.observe(log_likelihood, torch.tensor(5.0 * decoder.event_shape.numel()))
    mean = squared_error.item() / (5 * decoder.event_shape.numel())
    assert decoder.variance.running.item() == pytest.approx(mean)


@every
def test_decoders_report_the_mean_squared_error_of_the_training_samples(build: Build) -> None:
    decoder, (latent, cell) = build(), arguments((5,), (5,))
    value = decoder(latent, cell).mean.detach() + 0.01 * torch.randn(5, *decoder.event_shape)
    log_likelihood, squared_error = likelihood(decoder, value, latent, cell)
    decoder.report(log_likelihood, torch.tensor(5.0 * decoder.event_shape.numel()))
    mean = squared_error.item() / (5 * decoder.event_shape.numel())
    assert decoder.variance.scale().item() ** 2 == pytest.approx(mean)
    assert decoder.variance.training_variance().item() == pytest.approx(0.3)


def test_a_modality_that_no_training_sample_has_keeps_its_variance() -> None:
    decoder = SHARED["mlp"]()
    decoder.report(torch.tensor(0.0), torch.tensor(0.0))
    assert decoder.variance.scale().item() == pytest.approx(math.sqrt(0.3))
