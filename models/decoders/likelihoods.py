"""The interface of a likelihood: from what a network puts out to the distribution of every element."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import torch
from pyro.distributions import Bernoulli, Categorical, Poisson, StudentT
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributions import Distribution

from causalpima.models.decoders.networks import NetworkDecoder
from causalpima.models.distributions import Elementwise, MeanNegativeBinomial

__all__ = [
    "MAX_LOG_RATE",
    "MIN_DEGREES_OF_FREEDOM",
    "MIN_DISPERSION",
    "MIN_LOG_RATE",
    "BernoulliLikelihood",
    "CategoricalLikelihood",
    "Likelihood",
    "LikelihoodDecoder",
    "LikelihoodName",
    "NegativeBinomialLikelihood",
    "PoissonLikelihood",
    "StudentTLikelihood",
    "clamp_with_way_back",
    "inverse_softplus",
]


LikelihoodName = Literal["normal", "bernoulli", "categorical", "poisson", "negative_binomial", "student_t"]


class Likelihood(nn.Module, ABC):
    """Univariate distribution of an element, given the outputs of a network for it.

    Attributes:
        n_outputs: Outputs per element, P.
    """

    n_outputs: int = 1

    @abstractmethod
    def forward(self, outputs: Tensor) -> Distribution:
        """Distribution of every element.

        Args:
            outputs: `[*b, *event, P]`.

        Returns:
            Univariate, of batch shape `[*b, *event]`.
        """


# Likelihoods of yes or no, and of one out of K.


class BernoulliLikelihood(Likelihood):
    """`log p(x) = x a - log(1 + e^a)` for x in {0, 1}; the output a is the log-odds."""

    def forward(self, outputs: Tensor) -> Bernoulli:
        """See `Likelihood.forward`."""
        return Bernoulli(logits=outputs.squeeze(-1), validate_args=False)


class CategoricalLikelihood(Likelihood):
    """`log p(x = k) = a_k - log Σ_j e^{a_j}` for the codes k = 0 to K - 1, which have no order.

    Args:
        n_categories: K, at least 2.

    Raises:
        ValueError: Fewer than two categories.
    """

    def __init__(self, n_categories: int) -> None:
        super().__init__()
        if n_categories < 2:
            raise ValueError(f"n_categories: expected at least 2, got {n_categories}; a constant needs no likelihood")
        self.n_outputs = n_categories

    def forward(self, outputs: Tensor) -> Categorical:
        """See `Likelihood.forward`."""
        return Categorical(logits=outputs, validate_args=False)


# Numbers kept where nothing overflows, without a dead end for the optimiser.


def clamp_with_way_back(value: Tensor, low: float, high: float) -> Tensor:
    """Clamp whose gradient outside the bounds is kept if a descent step along it leads back, and zero otherwise."""
    return _Clamp.apply(value, low, high)


def inverse_softplus(value: float) -> float:
    """The x of which log(1 + e^x) is `value`."""
    return value + math.log(-math.expm1(-value))


class _Clamp(Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(value < low, value > high)
        return value.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        below, above = ctx.saved_tensors
        gradient = torch.where(below, grad_outputs[0].clamp(max=0), grad_outputs[0])
        return torch.where(above, gradient.clamp(min=0), gradient), None, None


# Likelihoods of counts: Poisson, and with more spread the negative binomial.


MIN_LOG_RATE, MAX_LOG_RATE = -20.0, 25.0
MIN_DISPERSION = 1e-6


class PoissonLikelihood(Likelihood):
    """`log p(x) = x log λ - λ - log x!` for counts x, with log λ = output + `log_rate`.

    Args:
        log_rate: Where the outputs start: the log of the mean count of the training samples saves the network the way
            there. A number, or one per element `[*event]`.
    """

    log_rate: Tensor

    def __init__(self, log_rate: float | Tensor = 0.0) -> None:
        super().__init__()
        self.register_buffer("log_rate", torch.as_tensor(log_rate, dtype=torch.get_default_dtype()))

    def forward(self, outputs: Tensor) -> Poisson:
        """See `Likelihood.forward`."""
        return Poisson(_bounded(outputs.squeeze(-1) + self.log_rate).exp(), validate_args=False)


class NegativeBinomialLikelihood(Likelihood):
    """Counts of mean μ and variance μ + α μ², with log μ = output + `log_rate`; see `MeanNegativeBinomial`.

    The inverse dispersion α is learned; as it goes to zero the likelihood becomes Poisson's.

    Args:
        log_rate: As for `PoissonLikelihood`.
        dispersion: α at the start.
        dispersion_shape: `()` for one α per modality, the event shape for one per element.

    Raises:
        ValueError: `dispersion` not above its lower bound.
    """

    log_rate: Tensor

    def __init__(
        self, log_rate: float | Tensor = 0.0, dispersion: float = 0.1, dispersion_shape: Sequence[int] = ()
    ) -> None:
        super().__init__()
        if dispersion <= MIN_DISPERSION:
            raise ValueError(f"dispersion: expected a start > {MIN_DISPERSION}, got {dispersion}; or choose poisson")
        self.register_buffer("log_rate", torch.as_tensor(log_rate, dtype=torch.get_default_dtype()))
        self.raw_dispersion = nn.Parameter(
            torch.full(tuple(dispersion_shape), inverse_softplus(dispersion - MIN_DISPERSION))
        )

    @property
    def dispersion(self) -> Tensor:
        """α, `[]` or `[*event]`."""
        return MIN_DISPERSION + nn.functional.softplus(self.raw_dispersion)

    def forward(self, outputs: Tensor) -> MeanNegativeBinomial:
        """See `Likelihood.forward`."""
        log_mean = _bounded(outputs.squeeze(-1) + self.log_rate)
        return MeanNegativeBinomial(log_mean, self.dispersion, validate_args=False)


def _bounded(log_rate: Tensor) -> Tensor:
    return clamp_with_way_back(log_rate, MIN_LOG_RATE, MAX_LOG_RATE)


# The decoder of every elementwise likelihood: a network for its parameters, on Z alone or with one head per cell.


class LikelihoodDecoder(NetworkDecoder):
    """p(X_m | Z, N) = ∏_d p(x_d | outputs of the network for element d).

    Body and head come from `bodies.mlp_network` or `bodies.convolutional_network`, with `n_cells or 1` heads and
    `likelihood.n_outputs` outputs.

    Args:
        body: Maps Z `[*b, J]` to features `[*b, F]`.
        head: Maps features to the outputs of all heads, `[*b, heads * D * P]`; D is the number of elements of an event,
            P the number of outputs that the likelihood needs for each.
        event_shape: Shape of one sample.
        likelihood: From outputs to distributions.
        n_cells: One head per cell if given, else one head on Z alone.
    """

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        event_shape: Sequence[int],
        likelihood: Likelihood,
        n_cells: int | None = None,
    ) -> None:
        super().__init__(body, head, event_shape, n_cells)
        self.likelihood = likelihood

    def forward(self, latent: Tensor, cell: Tensor) -> Elementwise:
        """Distribution of the modality; see `Decoder.forward`."""
        outputs = self.outputs(self.body(latent), cell)
        outputs = outputs.unflatten(-1, (*self.event_shape, self.likelihood.n_outputs))
        return Elementwise(self.likelihood(outputs), len(self.event_shape), validate_args=False)


# A likelihood with heavy tails, that single outliers do not bend.


MIN_DEGREES_OF_FREEDOM = 2.1


class StudentTLikelihood(Likelihood):
    r"""`p(x) = Γ((ν+1)/2) / (Γ(ν/2) √(νπ) s) (1 + (x - m)² / (ν s²))^{-(ν+1)/2}`; the output is m.

    On the standardised scale; the scale s is learned, one per modality. The variance s² ν / (ν - 2) exists, since ν
    stays above 2.1.

    Args:
        scale: s at the start.
        degrees_of_freedom: ν, or where it starts if it is learned.
        learned: Whether ν is learned.
        scale_floor: Smallest s: without one the network could follow single samples exactly.

    Raises:
        ValueError: `scale` or `degrees_of_freedom` not above its lower bound, or no positive `scale_floor`.
    """

    def __init__(
        self,
        scale: float = 1.0,
        degrees_of_freedom: float = 4.0,
        learned: bool = False,
        scale_floor: float = 1e-2,
    ) -> None:
        super().__init__()
        if not 0 < scale_floor < scale:
            raise ValueError(f"scale: expected 0 < scale_floor < scale, got {scale_floor} and {scale}")
        if degrees_of_freedom <= MIN_DEGREES_OF_FREEDOM:
            raise ValueError(
                f"degrees_of_freedom: expected > {MIN_DEGREES_OF_FREEDOM}, so that there is a variance, "
                f"got {degrees_of_freedom}"
            )
        self.scale_floor = scale_floor
        self.raw_scale = nn.Parameter(torch.tensor(inverse_softplus(scale - scale_floor)))
        raw = torch.tensor(inverse_softplus(degrees_of_freedom - MIN_DEGREES_OF_FREEDOM))
        self.raw_degrees_of_freedom = nn.Parameter(raw, requires_grad=learned)

    @property
    def scale(self) -> Tensor:
        """s, a scalar."""
        return self.scale_floor + nn.functional.softplus(self.raw_scale)

    @property
    def degrees_of_freedom(self) -> Tensor:
        """ν, a scalar."""
        return MIN_DEGREES_OF_FREEDOM + nn.functional.softplus(self.raw_degrees_of_freedom)

    def forward(self, outputs: Tensor) -> StudentT:
        """See `Likelihood.forward`."""
        return StudentT(self.degrees_of_freedom, outputs.squeeze(-1), self.scale, validate_args=False)
