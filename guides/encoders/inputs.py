"""What an encoder is shown of a batch: every element as one or more features, and which elements were measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.decoders.likelihoods import LikelihoodName

__all__ = [
    "CentredFeature",
    "CompressedFeature",
    "ElementFeatures",
    "EncoderInput",
    "IdentityFeature",
    "LogCountFeature",
    "OneHotFeatures",
    "features_of",
]


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
