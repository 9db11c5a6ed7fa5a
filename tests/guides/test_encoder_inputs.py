"""What encoders are shown: features of each kind of value, gaps as zeros, the mask as one more channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from causalpima.guides.encoders import (
    CentredFeature,
    CompressedFeature,
    ElementFeatures,
    Encoder,
    EncoderInput,
    IdentityFeature,
    LogCountFeature,
    OneHotFeatures,
    convolutional_encoder,
    curve_encoder,
    features_of,
    mlp_encoder,
)
from causalpima.models.decoders.likelihoods import LikelihoodName

LATENT, K = 3, 4

FEATURES: dict[str, tuple[Callable[[], ElementFeatures], Callable[..., Tensor], float]] = {
    "identity": (IdentityFeature, torch.randn, 1e30),
    "log counts": (LogCountFeature, lambda *shape: torch.poisson(torch.full(shape, 3.0)), -1.0),
    "compressed": (CompressedFeature, torch.randn, 1e30),
    "centred": (CentredFeature, lambda *shape: torch.bernoulli(torch.full(shape, 0.4)), 7.0),
    "one hot": (lambda: OneHotFeatures(K), lambda *shape: torch.randint(K, shape).to(torch.get_default_dtype()), 3.0),
}
NETWORKS: dict[str, tuple[Callable[..., Encoder], tuple[int, ...], tuple[int, ...]]] = {
    "mlp": (mlp_encoder, (3, 2), (5,)),
    "convolutional": (convolutional_encoder, (7, 6, 2), (4, 5)),
    "curve": (curve_encoder, (9,), (4, 5)),
}
each_feature = pytest.mark.parametrize(("make", "draw", "filler"), FEATURES.values(), ids=FEATURES.keys())
each_network = pytest.mark.parametrize(("build", "shape", "sizes"), NETWORKS.values(), ids=NETWORKS.keys())


def gaps(*shape: int) -> Tensor:
    return torch.rand(shape) < 0.6


# Features


def test_features_by_hand() -> None:
    counts, binary, codes = torch.tensor([0.0, 1.0, 99.0]), torch.tensor([0.0, 1.0]), torch.tensor([2.0, 0.0])
    torch.testing.assert_close(LogCountFeature()(counts)[:, 0], torch.tensor([1.0, 2.0, 100.0]).log())
    torch.testing.assert_close(CentredFeature()(binary), torch.tensor([[-1.0], [1.0]]))
    torch.testing.assert_close(OneHotFeatures(3)(codes), torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    assert torch.equal(IdentityFeature()(counts), counts.unsqueeze(-1))
    outliers = torch.tensor([0.0, 0.01, -1e6])
    torch.testing.assert_close(CompressedFeature()(outliers)[:2, 0], outliers[:2], rtol=1e-4, atol=0)
    torch.testing.assert_close(CompressedFeature()(outliers)[2, 0], -torch.tensor(2e6).log())


def test_every_likelihood_has_its_features() -> None:
    kinds = {name: type(features_of(name, K)) for name in get_args(LikelihoodName)}
    assert kinds == {
        "normal": IdentityFeature,
        "student_t": CompressedFeature,
        "bernoulli": CentredFeature,
        "categorical": OneHotFeatures,
        "poisson": LogCountFeature,
        "negative_binomial": LogCountFeature,
    }
    assert features_of("categorical", K).n_features == K


@each_feature
@pytest.mark.parametrize("bad", ["filler", "nan"])
def test_gaps_are_zeros_and_the_mask_is_the_last_channel(
    make: Callable[[], ElementFeatures], draw: Callable[..., Tensor], filler: float, bad: str
) -> None:
    inputs, observed = EncoderInput(make(), masked=True), gaps(5, 3, 2)
    value = draw(5, 3, 2)
    spoilt = torch.where(observed, value, torch.nan if bad == "nan" else filler)
    shown = inputs(spoilt, observed)
    assert shown.shape == (5, 3, 2, inputs.n_channels)
    assert torch.equal(shown[..., -1], observed.to(value))
    assert torch.equal(shown[..., :-1], make()(value) * observed.unsqueeze(-1))


@each_feature
def test_without_gaps_everything_counts_as_measured(
    make: Callable[[], ElementFeatures], draw: Callable[..., Tensor], filler: float
) -> None:
    value = draw(5, 3)
    for masked in (True, False):
        inputs = EncoderInput(make(), masked)
        assert torch.equal(inputs(value), inputs(value, torch.ones(5, 3, dtype=torch.bool)))
        assert inputs.n_channels == make().n_features + masked


@pytest.mark.parametrize("filler", [-1.0, -5.0, torch.nan, torch.inf])
def test_no_gradient_passes_a_gap(filler: float) -> None:
    value, observed = torch.tensor([2.0, filler], requires_grad=True), torch.tensor([True, False])
    EncoderInput(LogCountFeature())(value, observed).sum().backward()
    torch.testing.assert_close(value.grad, torch.tensor([1 / 3, 0.0]))


# Encoders


@each_network
@each_feature
@pytest.mark.parametrize("masked", [True, False])
def test_encoders_see_nothing_of_the_filler(
    build: Callable[..., Encoder],
    shape: tuple[int, ...],
    sizes: tuple[int, ...],
    make: Callable[[], ElementFeatures],
    draw: Callable[..., Tensor],
    filler: float,
    masked: bool,
) -> None:
    encoder, observed = build(shape, sizes, LATENT, masked, make()), gaps(6, *shape)
    value = draw(6, *shape).requires_grad_()
    encoded = encoder(value, observed)
    for bad in (filler, torch.nan, torch.inf):
        assert torch.equal(encoder(torch.where(observed, value, bad), observed).loc, encoded.loc)
    (encoded.loc.square().sum() + encoded.log_variance.square().sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and (p.grad != 0).any() for p in encoder.parameters())
    if value.grad is not None:  # indicators have none
        assert value.grad[~observed].count_nonzero() == 0


@each_network
def test_a_masked_encoder_tells_a_gap_from_a_zero(
    build: Callable[..., Encoder], shape: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    value, observed = torch.randn(6, *shape), gaps(6, *shape)
    zeroed = torch.where(observed, value, 0.0)
    masked, plain = build(shape, sizes, LATENT, True), build(shape, sizes, LATENT)
    assert not torch.allclose(masked(value, observed).loc, masked(zeroed).loc)
    assert torch.equal(plain(value, observed).loc, plain(zeroed).loc), "the control: without the channel it cannot"


@each_network
def test_the_mask_weights_alone_make_the_difference(
    build: Callable[..., Encoder], shape: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    """A masked encoder, whose weights on the mask are zero, is the plain one with the other weights."""
    masked, plain = build(shape, sizes, LATENT, True), build(shape, sizes, LATENT)
    state = masked.state_dict()
    first = next(name for name in state if name.endswith("weight"))
    state[first][:, 1::2] = 0
    masked.load_state_dict(state)
    plain.load_state_dict({**state, first: state[first][:, ::2]})
    value, observed = torch.randn(4, *shape), gaps(4, *shape)
    torch.testing.assert_close(masked(value, observed).loc, plain(value, observed).loc)


def test_an_encoder_of_ones_own_network_gets_zeros_for_gaps() -> None:
    encoder = Encoder(nn.Flatten())
    observed = torch.tensor([[True, False, True, False]])
    loc, log_variance = encoder(torch.tensor([[1.0, torch.nan, 3.0, torch.inf]]), observed)
    assert torch.equal(torch.cat([loc, log_variance], 1), torch.tensor([[1.0, 0.0, 3.0, 0.0]]))
