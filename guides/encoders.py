"""A unimodal Gaussian encoder."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from causalpima.models import gaussian
from causalpima.models.decoders.likelihoods import LikelihoodName
from causalpima.models.distributions import ComponentNormal

__all__ = [
    "ENCODERS",
    "MAX_LOG_VARIANCE",
    "MIN_LOG_VARIANCE",
    "CentredFeature",
    "CompressedFeature",
    "ElementFeatures",
    "Encoder",
    "EncoderInput",
    "GaussianParameters",
    "IdentityFeature",
    "LogCountFeature",
    "MakeEncoder",
    "OneHotFeatures",
    "convolutional_encoder",
    "curve_encoder",
    "features_of",
    "mlp_encoder",
]


# What an encoder is shown of a batch: every element as one or more features, and which elements were measured.


class ElementFeatures(nn.Module, ABC):
    """Numbers of order one that stand for each element of a modality.

    Attributes:
        n_features: How many stand for one element.
    """

    n_features: int = 1

    @abstractmethod
    def forward(self, value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape features"]:
        """Features of every element; zero is a value of the modality."""


class IdentityFeature(ElementFeatures):
    """x itself: for values that are standardised."""

    def forward(self, value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape features"]:
        """See `ElementFeatures.forward`."""
        return value.unsqueeze(-1)


class LogCountFeature(ElementFeatures):
    """log(1 + x): for counts, which may span decades."""

    def forward(self, value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape features"]:
        """See `ElementFeatures.forward`."""
        return value.log1p().unsqueeze(-1)


class CompressedFeature(ElementFeatures):
    """asinh(x), close to x for small and logarithmic for large values: an outlier cannot drown the other elements."""

    def forward(self, value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape features"]:
        """See `ElementFeatures.forward`."""
        return value.asinh().unsqueeze(-1)


class CentredFeature(ElementFeatures):
    """2 x - 1, from {0, 1} to {-1, 1}: an element that was not measured, zero, lies between."""

    def forward(self, value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape features"]:
        """See `ElementFeatures.forward`."""
        return (2 * value - 1).unsqueeze(-1)


class OneHotFeatures(ElementFeatures):
    """One indicator per category; an element that was not measured has none of them.

    Args:
        n_categories: K; the values are the codes 0 to K - 1.
    """

    codes: Tensor

    def __init__(self, n_categories: int) -> None:
        super().__init__()
        self.n_features = n_categories
        self.register_buffer("codes", torch.arange(n_categories), persistent=False)

    def forward(self, value: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape features"]:
        """See `ElementFeatures.forward`."""
        return (value.unsqueeze(-1) == self.codes).to(value)


class EncoderInput(nn.Module):
    """Values and gaps as one tensor: the features of every element, and a channel that is one where it was measured.

    Features of elements that were not measured are zero, whatever filler stands in their place.

    Args:
        features: How an element is shown; default: as it is.
        masked: Whether there is a channel for what was measured.
    """

    def __init__(self, features: ElementFeatures | None = None, masked: bool = False) -> None:
        super().__init__()
        self.features = features or IdentityFeature()
        self.masked = masked

    @property
    def n_channels(self) -> int:
        """Numbers per element, F."""
        return self.features.n_features + int(self.masked)

    def forward(
        self, value: Float[Tensor, "*shape"], observed: Bool[Tensor, "*shape"] | None = None
    ) -> Float[Tensor, "*shape channels"]:
        """Input of a network.

        Args:
            value: A batch, `[batch, *event]`.
            observed: Which elements were measured; None: all.
        """
        shown = self._shown(value, observed)
        if not self.masked:
            return shown
        measured = value.new_ones(value.shape) if observed is None else observed.to(value)
        return torch.cat([shown, measured.unsqueeze(-1)], dim=-1)

    def _shown(self, value: Tensor, observed: Tensor | None) -> Tensor:
        if observed is None:
            features: Tensor = self.features(value)
            return features
        in_support = torch.where(observed, value, 0.0)  # filler may be anything, also what has no logarithm
        return torch.where(observed.unsqueeze(-1), self.features(in_support), 0.0)


def features_of(likelihood: LikelihoodName, n_categories: int = 1) -> ElementFeatures:
    """How values of a likelihood are shown to an encoder.

    Args:
        likelihood: That of the modality.
        n_categories: K, for `categorical`.
    """
    return _FEATURES[likelihood](n_categories)


_FEATURES: dict[LikelihoodName, Callable[[int], ElementFeatures]] = {
    "normal": lambda _: IdentityFeature(),
    "student_t": lambda _: CompressedFeature(),
    "bernoulli": lambda _: CentredFeature(),
    "categorical": OneHotFeatures,
    "poisson": lambda _: LogCountFeature(),
    "negative_binomial": lambda _: LogCountFeature(),
}


MIN_LOG_VARIANCE, MAX_LOG_VARIANCE = -14.0, 10.0


class GaussianParameters(NamedTuple):
    """Mean and log-variance of a Gaussian with diagonal covariance, each `[*batch, latent]`."""

    loc: Tensor
    log_variance: Tensor

    @property
    def scale(self) -> Tensor:
        """Standard deviations."""
        return (0.5 * self.log_variance).exp()

    def draw(self, noise: Tensor | None = None, uniform: Tensor | None = None) -> Tensor:
        """`μ + σ ε`, `[*draws, *batch, latent]`.

        Args:
            noise: ε, broadcasts to `[*draws, *batch, latent]`; None: one draw, from torch's global generator.
            uniform: What a mixture chooses its component by; here there is nothing to choose.
        """
        return self.loc + self.scale * (torch.randn_like(self.loc) if noise is None else noise)

    def log_density(self, value: Tensor, present: Tensor | None = None) -> Tensor:
        """log q(value), `[*draws, *batch]`, of the dimensions that are `present` (`gaussian.log_density`)."""
        return gaussian.log_density(value, self.loc, self.scale, present)

    def entropy_at(self, sample: Tensor, present: Tensor | None = None) -> Tensor:
        """The entropy, `[*batch]`: exact, whatever was drawn; a mixture has none in closed form."""
        if present is not None:
            return gaussian.entropy(self.scale, present)
        return 0.5 * (self.log_variance.sum(-1) + self.loc.shape[-1] * (gaussian.LOG_2PI + 1))

    def parts(self) -> tuple[tuple[Tensor, GaussianParameters], ...]:
        """The Gaussians that this is a mixture of, each with its weight `[*batch]`: itself alone."""
        return ((torch.ones_like(self.loc[..., 0]), self),)

    def distribution(self) -> ComponentNormal:
        """As a Pyro program draws from it."""
        return ComponentNormal(self.loc, self.scale, validate_args=False)


class Encoder(nn.Module):
    """q(Z | X_m) = N(μ_m, diag σ_m²) with log σ_m² clamped to a range that no precision overflows in.

    Args:
        network: Maps its input to `[batch, 2 J]`: means, then log-variances.
        inputs: From values and gaps to the input of the network, `[batch, *event, F]`. Default: the values alone,
            `[batch, *event]`, zero where not measured.
    """

    def __init__(self, network: nn.Module, inputs: EncoderInput | None = None) -> None:
        super().__init__()
        self.network = network
        self.inputs = inputs

    def forward(self, value: Tensor, observed: Tensor | None = None) -> GaussianParameters:
        """Encode a batch.

        Args:
            value: `[batch, *event]`.
            observed: Bool `[batch, *event]`, which elements were measured; None: all. Values elsewhere touch nothing.
        """
        loc, log_variance = self.network(self._input(value, observed)).chunk(2, dim=-1)
        return GaussianParameters(loc, log_variance.clamp(MIN_LOG_VARIANCE, MAX_LOG_VARIANCE))

    def _input(self, value: Tensor, observed: Tensor | None) -> Tensor:
        if self.inputs is not None:
            shown: Tensor = self.inputs(value, observed)
            return shown
        return value if observed is None else torch.where(observed, value, 0.0)


# The networks behind encoders: multilayer perceptron, 2-D and 1-D convolutions.
#
# The paper puts batch normalisation after each convolution; here it is group normalisation with one group, which treats
# every sample alone: nothing changes between training and evaluation, or in a last batch of one.


def mlp_encoder(
    event_shape: Sequence[int],
    hidden: Sequence[int],
    latent_dim: int,
    masked: bool = False,
    features: ElementFeatures | None = None,
) -> Encoder:
    """Flatten, then linear layers with ReLU between them (paper, appendix B.1).

    Args:
        event_shape: Shape of one sample.
        hidden: Widths of the hidden layers, from X to Z.
        latent_dim: Dimension of Z.
        masked: Whether the network sees which elements were measured, as one more input per element.
        features: How an element is shown to the network; default: as it is.
    """
    inputs = EncoderInput(features, masked)
    widths = [math.prod(event_shape) * inputs.n_channels, *hidden]
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return Encoder(nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], 2 * latent_dim)), inputs)


def convolutional_encoder(
    event_shape: Sequence[int],
    channels: Sequence[int],
    latent_dim: int,
    masked: bool = False,
    features: ElementFeatures | None = None,
) -> Encoder:
    """3x3 convolutions with ELU and normalisation for images `[height, width, channel]` (paper, appendix B.2).

    Args:
        event_shape: `(height, width, channel)`, height and width larger than twice the number of layers.
        channels: Channels of each layer, for example `(32, 64)`.
        latent_dim: Dimension of Z.
        masked: Whether the network sees which elements were measured, as one more channel for each of the image's.
        features: How an element is shown to the network; default: as it is.

    Raises:
        ValueError: No layer, or the event is no image or too small for the layers.
    """
    _check_size("image", event_shape, 3, len(channels))
    inputs = EncoderInput(features, masked)
    height, width, n_channels = event_shape
    shrunk = (height - 2 * len(channels)) * (width - 2 * len(channels))
    layers = _convolutions(nn.Conv2d, [n_channels * inputs.n_channels, *channels])
    dense = nn.Linear(channels[-1] * shrunk, 2 * latent_dim)
    return Encoder(nn.Sequential(_ImageChannelsFirst(), *layers, nn.Flatten(), dense), inputs)


def curve_encoder(
    event_shape: Sequence[int],
    channels: Sequence[int],
    latent_dim: int,
    masked: bool = False,
    features: ElementFeatures | None = None,
) -> Encoder:
    """1-D convolutions of width 3 with ELU and normalisation for curves `[position]` (paper, appendix B.2).

    Args:
        event_shape: `(length,)`.
        channels: Channels of each layer, for example `(8, 16)`.
        latent_dim: Dimension of Z.
        masked: Whether the network sees which elements were measured, as one more channel.
        features: How an element is shown to the network; default: as it is.

    Raises:
        ValueError: No layer, or the event is no curve or too short for the layers.
    """
    _check_size("curve", event_shape, 1, len(channels))
    inputs = EncoderInput(features, masked)
    layers = _convolutions(nn.Conv1d, [inputs.n_channels, *channels])
    dense = nn.Linear(channels[-1] * (event_shape[0] - 2 * len(channels)), 2 * latent_dim)
    return Encoder(nn.Sequential(_ChannelsFirst(), *layers, nn.Flatten(), dense), inputs)


def _check_size(kind: str, event_shape: Sequence[int], n_dims: int, n_layers: int) -> None:
    sides = event_shape[: max(n_dims - 1, 1)]
    if n_layers < 1:
        raise ValueError(f"{kind} encoder: expected channels of at least one convolution, got none")
    if len(event_shape) != n_dims or min(sides) <= 2 * n_layers:
        raise ValueError(
            f"{kind} encoder: expected {n_dims} dimensions and sides larger than {2 * n_layers} "
            f"for {n_layers} convolutions, got shape {tuple(event_shape)}"
        )


def _convolutions(layer: type[nn.Conv1d] | type[nn.Conv2d], channels: Sequence[int]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for before, after in pairwise(channels):
        layers += [layer(before, after, 3), nn.ELU(), nn.GroupNorm(1, after)]
    return layers


class _ImageChannelsFirst(nn.Module):
    """`[batch, height, width, channel, F]` -> `[batch, channel * F, height, width]`."""

    def forward(self, image: Float[Tensor, "batch height width channel numbers"]) -> Tensor:
        return image.flatten(-2).movedim(-1, 1)


class _ChannelsFirst(nn.Module):
    """`[batch, position, F]` -> `[batch, F, position]`."""

    def forward(self, curve: Float[Tensor, "batch position numbers"]) -> Tensor:
        return curve.movedim(-1, 1)


MakeEncoder = Callable[..., Encoder]
"""Makes an encoder from the shape of a sample, the widths of its layers, the dimension of Z, whether it sees which
elements were measured, and how an element is shown (`ElementFeatures`)."""

ENCODERS: Mapping[str, MakeEncoder] = {
    "mlp": mlp_encoder,
    "convolutional": convolutional_encoder,
    "curve": curve_encoder,
}
"""By the name that `modality.NAME.encoder.kind` has."""
