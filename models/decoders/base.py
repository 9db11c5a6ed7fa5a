"""The interface of every decoder, neural or physical."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor, nn
from torch.autograd import Function

from causalpima.models.distributions import ElementNormal
from causalpima.models.gaussian import LOG_2PI

__all__ = [
    "Decoder",
    "DecoderVariance",
    "VarianceDecoder",
    "VarianceKind",
    "VariancePer",
]


class Decoder(nn.Module, ABC):
    """p(X_m | Z, N) of one modality.

    Attributes:
        event_shape: Shape of one sample of the modality.
        depends_on_cell: Whether the distribution changes with N.
        depends_on_latent: Whether the distribution changes with Z.
    """

    event_shape: torch.Size
    depends_on_cell: bool
    depends_on_latent: bool

    @abstractmethod
    def forward(self, latent: Tensor, cell: Tensor) -> TorchDistribution:
        """Distribution of the modality.

        Args:
            latent: Z, `[*b, J]`.
            cell: Index of the cell, integer; its shape broadcasts with `*b` (`[C, 1]` under enumeration).

        Returns:
            Batch shape: `*b` for decoders on Z alone, the broadcast of `*b` and the shape of `cell` otherwise. For
            modalities that lack single elements an `ElementDistribution`.
        """

    def observe(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Take note of a training batch; decoders with an analytic variance use it.

        Args:
            log_likelihood: Expected log p(X_m | Z, N), summed over the measured elements of the batch.
            n_elements: Their number.
        """

    def report(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Called once after training with the same sums over all training samples, for what is reported from then on.

        Args:
            log_likelihood: Expected log p(X_m | Z, N), summed over the measured elements of the training samples.
            n_elements: Their number.
        """

    @property
    def reports_elements(self) -> bool:
        """Whether what is reported has a variance per element, which `report_elements` is to be told."""
        return False

    def report_elements(self, squared_error: Tensor, n_elements: Tensor) -> None:
        """Called after `report`, with sums over all training samples per element, if `reports_elements`.

        Args:
            squared_error: Expected squared distance of X_m from the mean, summed over the samples that have the
                element, `[*event]`.
            n_elements: Their number, `[*event]`.
        """

    def reported(self, distribution: TorchDistribution) -> TorchDistribution:
        """What `forward` returned as intervals, draws and log-likelihoods have it; the objective has it as it is."""
        return distribution

    def relabel(self, permutation: Tensor) -> None:
        """Give the cells other numbers: what belonged to cell c now belongs to cell `permutation[c]`, `[C]`.

        Raises:
            ValueError: The decoder depends on the cell, and does not say how.
        """
        if self.depends_on_cell:
            raise ValueError(
                f"{type(self).__name__}: expected a method relabel(permutation) of a decoder that depends on the cell, "
                "got none; define it, so that cells can be named"
            )

    def update_cells(self, mean: Tensor, weight: Tensor) -> None:
        """Closed-form or direct update of what belongs to each cell, after the clusters were read out.

        Decoders on N alone use it, for gradients alone find the nearest optimum only.

        Args:
            mean: Mean of the measured values under q(N|X) per cell, on the scale of the model, `[C, *event]`; zero
                where the weight is.
            weight: Sum of q(N|X) over the samples that have the element, `[C, *event]`.
        """


# The variance of a Gaussian decoder: analytic with a floor, learned, or fixed; per element where it is reported.


VarianceKind = Literal["analytic", "learned", "fixed"]
VariancePer = Literal["element", "modality"]

_PSEUDO_COUNT = 5.0


class DecoderVariance(nn.Module):
    r"""σ̂_m²: one number per modality while training, and one per element in what is reported of X, if asked for.

    * `analytic`: the maximiser of the objective, expected squared error over observed elements divided by their number
      (σ-VAE, Rybkin et al. 2021), as a running mean over batches in a detached buffer: the plain mean of the first
      1 / (1 - decay) batches, then exponentially weighted.
    * `learned`: a parameter, log σ̂², trained by gradient.
    * `fixed`: stays at `initial`, whatever the floor.

    While training, a variance that moves is never smaller than `floor` (an analytic variance alone over-sharpens the
    latent space). After training `reported` is set to the variance re-estimated on the training data, without the
    floor, and `use_reported` switches everything that is reported to it.

    With `elements`, distributions of X that are reported (`of_elements`: intervals, draws, log-likelihoods) have a
    variance per element, σ̂_e², shrunk towards σ̂² (`report_elements`). The objective and q(N|X)
    keep `scale`, one number.

    Args:
        kind: How the variance is set.
        initial: Value before the first update.
        floor: Smallest variance while training, unless it is fixed.
        decay: Weight of the past in the running mean.
        elements: Shape of one sample, for a reported variance per element; None: one for all of them.

    Raises:
        ValueError: `initial` or `floor` not positive.
    """

    running: Tensor
    n_batches: Tensor
    reported: Tensor
    use_reported: Tensor
    element: Tensor | None

    def __init__(
        self,
        kind: VarianceKind = "analytic",
        initial: float = 1.0,
        floor: float = 1e-4,
        decay: float = 0.9,
        elements: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        if initial <= 0 or floor <= 0:
            raise ValueError(f"decoder variance: expected initial > 0 and floor > 0, got {initial} and {floor}")
        self.kind: VarianceKind = kind
        self.floor, self.decay = floor, decay
        self.register_buffer("running", torch.tensor(float(initial)))
        self.register_buffer("n_batches", torch.tensor(0.0))
        self.register_buffer("reported", torch.tensor(float(initial)))
        self.register_buffer("use_reported", torch.tensor(False))
        self.register_buffer("element", None if elements is None else torch.full(tuple(elements), float(initial)))
        if kind == "learned":
            self.log_variance = nn.Parameter(torch.tensor(math.log(initial)))

    def training_variance(self) -> Tensor:
        """The floored variance that the training objective uses, a scalar."""
        if self.kind == "fixed":
            return self.running
        if self.kind == "learned":
            return _Floor.apply(self.log_variance.exp(), self.floor)
        return self.running.clamp(min=self.floor)

    def scale(self) -> Tensor:
        """σ̂ in use: from the floored variance in training, from the reported one afterwards."""
        return torch.sqrt(torch.where(self.use_reported, self.reported, self.training_variance()))

    def of_elements(self, distribution: TorchDistribution) -> TorchDistribution:
        """The Gaussian of a decoder as it is reported: σ̂_e of every element after training, where there is one."""
        if self.element is None:
            return distribution
        scale = torch.sqrt(torch.where(self.use_reported, self.element, self.training_variance()))
        return ElementNormal(distribution.mean, scale)

    def reported_variance(self) -> Tensor:
        """The variance of what is reported of X: `[*event]` if it is one per element, else a scalar."""
        return self.reported if self.element is None else self.element

    @torch.no_grad()
    def squared_error(self, log_likelihood: Tensor, n_elements: Tensor) -> Tensor:
        """Invert `log p = -½ ‖x - μ̂‖² / σ̂² - D log σ̂ - ½ D log 2π` over D = `n_elements` for the squared error."""
        scale = self.scale()
        return -2 * scale.square() * (log_likelihood + n_elements * (scale.log() + 0.5 * LOG_2PI))

    @torch.no_grad()
    def observe(self, squared_error: Tensor, n_elements: Tensor) -> None:
        """Move an analytic variance towards `squared_error / n_elements` of a batch."""
        if self.kind == "analytic":
            mean = squared_error / n_elements.clamp(min=1)
            seen = n_elements > 0
            self.n_batches += seen
            weight = (1 / self.n_batches.clamp(min=1)).clamp(min=1 - self.decay)
            self.running.lerp_(torch.where(seen, mean, self.running).to(self.running), weight)

    @torch.no_grad()
    def report(self, variance: Tensor | float) -> None:
        """Use this unfloored variance for everything that is reported from now on, for all elements alike."""
        self.reported.fill_(max(float(variance), torch.finfo(self.reported.dtype).tiny))
        if self.element is not None:
            self.element.copy_(self.reported.expand_as(self.element))
        self.use_reported.fill_(True)

    @torch.no_grad()
    def report_elements(self, squared_error: Tensor, n_elements: Tensor) -> None:
        r"""Estimate σ̂_e² after `report`, $(S_e + k \hat\sigma^2) / (n_e + k)$ with k = 5 pseudo-counts.

        An element that was rarely measured, or that never errs, keeps part of the variance of all; none has zero.

        Args:
            squared_error: S_e, expected squared error summed over the samples that have the element, `[*event]`.
            n_elements: n_e, the number of these samples, `[*event]`.
        """
        if self.element is not None:
            shrunk = (squared_error + _PSEUDO_COUNT * self.reported) / (n_elements + _PSEUDO_COUNT)
            self.element.copy_(shrunk.clamp(min=torch.finfo(self.element.dtype).tiny))

    @torch.no_grad()
    def resume_training(self) -> None:
        """Go back to the floored training variance."""
        self.use_reported.fill_(False)


class _Floor(Function):
    """Clamp from below that lets a descent step climb back: below the floor only gradients that raise it pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor, floor: float) -> Tensor:
        return value.clamp(min=floor)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        value, ctx.floor = inputs
        ctx.save_for_backward(value)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (value,) = ctx.saved_tensors
        return torch.where(value < ctx.floor, grad_outputs[0].clamp(max=0), grad_outputs[0]), None


# What decoders with a Gaussian likelihood share: how their variance learns, and how it is reported.


class VarianceDecoder(Decoder):
    """A decoder whose distribution is a Gaussian of scale `variance.scale()`.

    Attributes:
        variance: σ̂_m².
    """

    variance: DecoderVariance

    @torch.no_grad()
    def observe(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Update an analytic variance from the squared error behind a log-likelihood; see `Decoder.observe`."""
        self.variance.observe(self.variance.squared_error(log_likelihood, n_elements), n_elements)

    @torch.no_grad()
    def report(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Switch to the variance of the training samples without the floor, if there are any; see `Decoder.report`."""
        if n_elements > 0:
            self.variance.report(self.variance.squared_error(log_likelihood, n_elements) / n_elements)

    @property
    def reports_elements(self) -> bool:
        """See `Decoder.reports_elements`."""
        return self.variance.element is not None

    def report_elements(self, squared_error: Tensor, n_elements: Tensor) -> None:
        """Set the reported variance of every element; see `DecoderVariance.report_elements`."""
        self.variance.report_elements(squared_error, n_elements)

    def reported(self, distribution: TorchDistribution) -> TorchDistribution:
        """With the reported variance of every element, where there is one; see `Decoder.reported`."""
        return self.variance.of_elements(distribution)
