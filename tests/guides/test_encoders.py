"""Laws that every encoder keeps: shapes, clamping, samples alone, gradients, bad sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from causalpima.guides.encoders import (
    MAX_LOG_VARIANCE,
    MIN_LOG_VARIANCE,
    Encoder,
    GaussianParameters,
    convolutional_encoder,
    curve_encoder,
    mlp_encoder,
)

LATENT = 3

CONSTRUCTORS: dict[str, tuple[Callable[[], Encoder], tuple[int, ...]]] = {
    "mlp": (lambda: mlp_encoder((4, 3, 2), (9, 7), LATENT), (4, 3, 2)),
    "linear": (lambda: mlp_encoder((6,), (), LATENT), (6,)),
    "convolutional": (lambda: convolutional_encoder((9, 7, 3), (6, 8), LATENT), (9, 7, 3)),
    "convolutional, odd sides": (lambda: convolutional_encoder((27, 31, 1), (4, 5), LATENT), (27, 31, 1)),
    "convolutional, as small as can be": (lambda: convolutional_encoder((5, 5, 2), (4, 6), LATENT), (5, 5, 2)),
    "curve": (lambda: curve_encoder((17,), (4, 6), LATENT), (17,)),
    "curve, as short as can be": (lambda: curve_encoder((3,), (6,), LATENT), (3,)),
}
every = pytest.mark.parametrize(("build", "shape"), CONSTRUCTORS.values(), ids=CONSTRUCTORS.keys())


@every
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_one_gaussian_per_sample(build: Callable[[], Encoder], shape: tuple[int, ...], batch: int) -> None:
    encoded = build()(torch.randn(batch, *shape))
    assert isinstance(encoded, GaussianParameters)
    assert encoded.loc.shape == encoded.log_variance.shape == (batch, LATENT)
    torch.testing.assert_close(encoded.scale.square().log(), encoded.log_variance)


@every
@pytest.mark.parametrize("training", [True, False])
def test_samples_do_not_see_each_other(build: Callable[[], Encoder], shape: tuple[int, ...], training: bool) -> None:
    encoder, value = build().train(training), torch.randn(5, *shape)
    together = encoder(value)
    alone = [encoder(row.unsqueeze(0)) for row in value]
    torch.testing.assert_close(together.loc, torch.cat([one.loc for one in alone]))
    torch.testing.assert_close(together.log_variance, torch.cat([one.log_variance for one in alone]))
    assert together.loc.unique(dim=0).shape[0] == 5


@every
def test_gradients_reach_every_parameter(build: Callable[[], Encoder], shape: tuple[int, ...]) -> None:
    encoder = build()
    encoded = encoder(torch.randn(20, *shape))
    (encoded.loc.square().sum() + encoded.log_variance.square().sum()).backward()
    assert [name for name, p in encoder.named_parameters() if p.grad is None or p.grad.count_nonzero() == 0] == []


@every
def test_no_samples_at_all(build: Callable[[], Encoder], shape: tuple[int, ...]) -> None:
    encoder = build()
    encoded = encoder(torch.zeros(0, *shape))
    assert encoded.loc.shape == (0, LATENT)
    encoded.loc.sum().backward()
    assert all(p.grad is not None and p.grad.count_nonzero() == 0 for p in encoder.parameters())


@every
def test_state_makes_the_same_encoder(build: Callable[[], Encoder], shape: tuple[int, ...]) -> None:
    encoder, other, value = build(), build(), torch.randn(4, *shape)
    assert not torch.equal(encoder(value).loc, other(value).loc)
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder(value).loc, other(value).loc)


@every
def test_nothing_is_counted_or_averaged_while_training(build: Callable[[], Encoder], shape: tuple[int, ...]) -> None:
    assert not list(build().buffers()), "no running statistics"


@pytest.mark.float32
@every
def test_data_of_any_size_give_finite_parameters(build: Callable[[], Encoder], shape: tuple[int, ...]) -> None:
    for size in (0.0, 1e-20, 1e6):
        encoded = build()(size * torch.randn(3, *shape))
        assert encoded.loc.dtype == torch.float32
        assert encoded.loc.isfinite().all()
        assert encoded.scale.isfinite().all()
        assert (encoded.scale > 0).all()


@pytest.mark.float32
def test_log_variance_is_clamped_to_where_precisions_are_finite() -> None:
    encoder = Encoder(nn.Identity())
    encoded = encoder(torch.tensor([[5.0, -2.0, -1e30, 1e30], [1e30, 0.0, -3.0, 9.5]]))
    expected = torch.tensor([[MIN_LOG_VARIANCE, MAX_LOG_VARIANCE], [-3.0, 9.5]])
    assert torch.equal(encoded.log_variance, expected)
    assert torch.equal(encoded.loc, torch.tensor([[5.0, -2.0], [1e30, 0.0]])), "means are not touched"
    precision = encoded.scale**-2
    assert ((precision > 0) & precision.isfinite()).all()


@pytest.mark.parametrize("shape", [(4, 9, 3), (9, 4, 3), (9, 9), (81,), ()])
def test_images_too_small_for_the_layers_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"image encoder: expected 3 dimensions and sides larger than 4 .* got shape"):
        convolutional_encoder(shape, (2, 3), LATENT)


@pytest.mark.parametrize("shape", [(4,), (9, 1), ()])
def test_curves_too_short_for_the_layers_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"curve encoder: expected 1 dimensions and sides larger than 4 .* got shape"):
        curve_encoder(shape, (2, 3), LATENT)


def test_convolutions_without_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="image encoder: expected channels of at least one convolution, got none"):
        convolutional_encoder((9, 9, 3), (), LATENT)
    with pytest.raises(ValueError, match="curve encoder: expected channels of at least one convolution, got none"):
        curve_encoder((9,), (), LATENT)
