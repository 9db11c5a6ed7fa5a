"""q(Z | X) as a mixture of Gaussians with given weights: its parameters, and as a Pyro distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import constraints

from guides.encoders.base import GaussianParameters
from models import gaussian

__all__ = ["MixtureNormal", "MixtureParameters"]


class MixtureParameters(NamedTuple):
    r"""q(z) = Σ_s w_s N(z; μ_s, diag σ_s²) with weights that are not learned; S Gaussians.

    It has the interface of `GaussianParameters`. `loc`, `log_variance` and `scale` are moments of the whole: the mean,
    and the variance of every dimension. What is an expectation of a Gaussian term is exact, a sum over `parts`; the
    entropy has no closed form, and `entropy_at` estimates it without bias.

    Attributes:
        locs: μ_s, `[*batch, S, latent]`; finite filler where the weight is zero.
        log_variances: log σ_s², `[*batch, S, latent]`.
        log_weights: log w_s, `[*batch, S]`, -infinity where a sample lacks what the Gaussian is made of.
    """

    locs: Tensor
    log_variances: Tensor
    log_weights: Tensor

    @property
    def loc(self) -> Tensor:
        """Mean `Σ_s w_s μ_s`, `[*batch, latent]`."""
        return (self.log_weights.exp().unsqueeze(-1) * self.locs).sum(-2)

    @property
    def log_variance(self) -> Tensor:
        """Logarithm of the variances `Σ_s w_s [σ_s² + (μ_s - μ)²]`, `[*batch, latent]`."""
        spread = self.log_variances.exp() + (self.locs - self.loc.unsqueeze(-2)).square()
        return (self.log_weights.exp().unsqueeze(-1) * spread).sum(-2).log()

    @property
    def scale(self) -> Tensor:
        """Standard deviations, `[*batch, latent]`."""
        return (0.5 * self.log_variance).exp()

    @property
    def _scales(self) -> Tensor:
        return (0.5 * self.log_variances).exp()

    def draw(self, noise: Tensor | None = None, uniform: Tensor | None = None) -> Tensor:
        """A Gaussian by its weight, then `μ_s + σ_s ε`, `[*draws, *batch, latent]`.

        The weights are fixed, so that gradients along the drawn Gaussians are without bias.

        Args:
            noise: ε, broadcasts to `[*draws, *batch, latent]`; None: one draw, from torch's global generator.
            uniform: In [0, 1), broadcasts to `[*draws, *batch]`, what the Gaussian is chosen by; None: from torch's
                global generator.
        """
        noise = torch.randn_like(self.locs[..., 0, :]) if noise is None else noise
        shape = torch.broadcast_shapes(noise.shape, self.locs[..., 0, :].shape)
        uniform = torch.rand(shape[:-1], dtype=noise.dtype, device=noise.device) if uniform is None else uniform
        loc, scale = self._chosen(uniform.expand(shape[:-1]))
        return loc + scale * noise

    def _chosen(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and scale of the Gaussian in whose share of [0, 1) the number falls; none without weight is chosen."""
        below = self.log_weights.exp().cumsum(-1)
        index = (below / below[..., -1:] <= uniform.unsqueeze(-1)).sum(-1)
        where = index[..., None, None].expand(*index.shape, 1, self.locs.shape[-1])
        parts = (part.expand(*index.shape, *part.shape[-2:]) for part in (self.locs, self._scales))
        loc, scale = (part.gather(-2, where).squeeze(-2) for part in parts)
        return loc, scale

    def log_density(self, value: Tensor, present: Tensor | None = None) -> Tensor:
        """log q(value) = log Σ_s w_s N(value; μ_s, σ_s²), `[*draws, *batch]`."""
        mask = None if present is None else present.unsqueeze(-2)
        of_parts = gaussian.log_density(value.unsqueeze(-2), self.locs, self._scales, mask)
        return torch.logsumexp(self.log_weights + of_parts, dim=-1)

    def entropy_at(self, sample: Tensor, present: Tensor | None = None) -> Tensor:
        """`-log q(z)` at the drawn z, `[*batch]`: an estimate of the entropy without bias."""
        return -self.log_density(sample, present)

    def parts(self) -> tuple[tuple[Tensor, GaussianParameters], ...]:
        """The Gaussians, each with its weight `[*batch]`."""
        split = (part.unbind(-2) for part in (self.locs, self.log_variances))
        gaussians = (GaussianParameters(*pair) for pair in zip(*split, strict=True))
        return tuple(zip(self.log_weights.exp().unbind(-1), gaussians, strict=True))

    def distribution(self) -> MixtureNormal:
        """As a Pyro program draws from it."""
        return MixtureNormal(self)


class MixtureNormal(TorchDistribution):
    r"""Σ_s w_s N(μ_s, diag σ_s²) with fixed weights.

    `rsample` is pathwise: a component by its weight, then `μ_s + σ_s ε`. As the weights have no gradient,
    `∇ E_q f = Σ_s w_s ∇ E_{N_s} f`, and what flows along the chosen component is an estimate of it without bias.

    Args:
        parameters: The mixture, `[*batch, S, J]`.
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.independent(constraints.real, 1)
    has_rsample = True

    def __init__(self, parameters: MixtureParameters, batch_shape: Sequence[int] | None = None) -> None:
        self.parameters = parameters
        shape = parameters.log_weights.shape[:-1] if batch_shape is None else batch_shape
        super().__init__(torch.Size(shape), parameters.locs.shape[-1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        """Mean, `[*b, J]`."""
        return self.parameters.loc.expand(*self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> MixtureNormal:
        """The same distribution with a larger batch shape; the tensors are not expanded."""
        return MixtureNormal(self.parameters, batch_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws, reparametrised within their component."""
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(shape, dtype=self.parameters.locs.dtype, device=self.parameters.locs.device)
        return self.parameters.draw(noise)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of `value` `[*b, J]`."""
        log_density = self.parameters.log_density(value)
        return log_density.expand(torch.broadcast_shapes(log_density.shape, self.batch_shape))
