"""Gaussian log-densities and their expectations under another Gaussian: pure functions.

Components carry `scale_tril` `[K, J, J]` (full covariance) or `scale` `[K, J]` (diagonal); the number of dimensions
tells which.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd import Function

from causalpima.models.parallel import in_front, stacked_linear_squared_error

__all__ = [
    "covariance",
    "entropy",
    "expected_log_density",
    "floored_cholesky",
    "linear_squared_error",
    "log_density",
    "own_generators",
    "squared_error",
]


LOG_2PI = math.log(2 * math.pi)


def _is_diagonal(loc: Tensor, scale: Tensor) -> bool:
    return scale.dim() == loc.dim()


def log_density(value: Tensor, loc: Tensor, scale: Tensor, present: Tensor | None = None) -> Tensor:
    """log N(value; loc, scale) summed over the last dimension; arguments broadcast.

    Args:
        value: `[*batch, J]`.
        loc: `[*batch, J]`.
        scale: Standard deviations `[*batch, J]`, or Cholesky factors `[*batch, J, J]`.
        present: Bool `[*batch, J]`: the density is the marginal one of these dimensions. They and the others must be
            independent (a Cholesky factor of blocks). None: all.
    """
    if _is_diagonal(loc, scale):
        whitened, log_scale = (value - loc) / scale, scale.log()
    else:
        whitened, log_scale = _whiten(value - loc, scale), scale.diagonal(dim1=-2, dim2=-1).log()
    n_dims = loc.shape[-1] if present is None else present.sum(-1)
    return -0.5 * _sum(whitened.square(), present) - _sum(log_scale, present) - 0.5 * LOG_2PI * n_dims


def expected_log_density(
    q_loc: Tensor, q_scale: Tensor, loc: Tensor, scale: Tensor, present: Tensor | None = None
) -> Tensor:
    r"""E_q log N(z; loc, scale) for q = N(q_loc, diag(q_scale²)) (paper, appendix E, corollary and lemma).

    Diagonal: `-½ Σ_j [log 2π σ̃_j² + σ_j²/σ̃_j² + (μ_j - μ̃_j)²/σ̃_j²]`.
    Full: `-½ [J log 2π + log det Σ̃ + (μ - μ̃)ᵀ Σ̃⁻¹ (μ - μ̃) + tr(Σ̃⁻¹ diag σ²)]`.

    Args:
        q_loc: `[*batch, J]`.
        q_scale: Standard deviations of q, `[*batch, J]`.
        loc: `[*batch, J]`.
        scale: Standard deviations `[*batch, J]`, or Cholesky factors `[*batch, J, J]`.
        present: As for `log_density`.
    """
    at_mean = log_density(q_loc, loc, scale, present)
    if _is_diagonal(loc, scale):
        return at_mean - 0.5 * _sum((q_scale / scale).square(), present)
    precision_diagonal = _inverse(scale).square().sum(-2)
    return at_mean - 0.5 * _sum(precision_diagonal * q_scale.square(), present)


def entropy(
    q_scale: Float[Tensor, "*batch latent"], present: Bool[Tensor, "*batch latent"] | None = None
) -> Float[Tensor, "*batch"]:
    """Entropy of N(., diag(q_scale²)): `½ Σ_j (log 2π σ_j² + 1)`, over the dimensions that are present."""
    n_dims = q_scale.shape[-1] if present is None else present.sum(-1)
    return _sum(q_scale.log(), present) + 0.5 * (LOG_2PI + 1) * n_dims


def covariance(scale: Tensor) -> Tensor:
    """Covariance matrices `[K, J, J]` of components given by `scale` `[K, J]` or `scale_tril` `[K, J, J]`."""
    if scale.dim() == 2:
        return torch.diag_embed(scale.square())
    return scale @ scale.mT


def floored_cholesky(matrix: Tensor, floor: float) -> Tensor:
    """Cholesky factors of covariance matrices `[*batch, J, J]` whose eigenvalues are set to `floor` where below it."""
    values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
    return torch.linalg.cholesky((vectors * values.clamp(min=floor).unsqueeze(-2)) @ vectors.mT)


def _inverse(scale_tril: Tensor) -> Tensor:
    eye = torch.eye(scale_tril.shape[-1], dtype=scale_tril.dtype, device=scale_tril.device)
    return torch.linalg.solve_triangular(scale_tril, eye.expand_as(scale_tril), upper=False)


def _whiten(difference: Tensor, scale_tril: Tensor) -> Tensor:
    return (_inverse(scale_tril) * difference.unsqueeze(-2)).sum(-1)


def _sum(per_dimension: Tensor, present: Tensor | None) -> Tensor:
    """Over the dimensions that are present."""
    return per_dimension.sum(-1) if present is None else torch.where(present, per_dimension, 0.0).sum(-1)


# Squared errors of Gaussian likelihoods, each with one array of the size of the data saved for its gradient.


def squared_error(value: Tensor, loc: Tensor, event_dim: int, observed: Tensor | None = None) -> Tensor:
    """`‖value - loc‖²` over the last `event_dim` dimensions; the others broadcast.

    Args:
        value: `[*b, *event]`.
        loc: `[*c, *event]`.
        event_dim: Number of event dimensions.
        observed: Bool, which elements count; None: all. The others get no gradient, whatever their value.

    Returns:
        The broadcast of `[*b]` and `[*c]`.
    """
    residual = loc - value
    if observed is not None:
        residual = torch.where(observed, residual, 0.0)
    return _SumOfSquares.apply(residual, event_dim)


def linear_squared_error(hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    """`‖hidden @ weight.T + bias - target‖²` of every row, `[n]`: a linear layer fused with its squared error.

    Args:
        hidden: `[n, H]`.
        weight: `[D, H]`.
        bias: `[D]`.
        target: `[n, D]`.
    """
    error: Tensor = _LinearSquaredError.apply(hidden, weight, bias, target)[0]
    return error


class _SumOfSquares(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(residual: Tensor, event_dim: int) -> Tensor:
        return _sum_of_squares(residual, event_dim)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        residual, ctx.event_dim = inputs
        ctx.save_for_backward(residual)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (residual,) = ctx.saved_tensors
        twice = 2 * grad_outputs[0]
        return twice.reshape(twice.shape + (1,) * ctx.event_dim) * residual, None


class _LinearSquaredError(Function):
    """Returns the residual, too, which has no gradient: only inputs and outputs can be kept for the backward pass."""

    @staticmethod
    def forward(hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        residual = (bias - target).addmm_(hidden, weight.T)
        return _sum_of_squares(residual, 1), residual

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Any, Any]:
        error = stacked_linear_squared_error(*map(in_front, inputs, in_dims, [info.batch_size] * 4))
        return (error, error.new_empty(info.batch_size, 0)), (0, 0)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor | None, ...]:
        if grad_outputs[0] is None:  # of a second derivative that nothing asks for
            return None, None, None, None
        hidden, weight, bias, target, residual = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives, the residual as a function of the inputs
            residual = torch.addmm(bias, hidden, weight.T) - target
        twice = 2 * grad_outputs[0].unsqueeze(-1)
        needs_hidden, needs_weight, needs_bias, needs_target = ctx.needs_input_grad
        return (
            twice * (residual @ weight) if needs_hidden else None,
            residual.T @ (twice * hidden) if needs_weight else None,
            residual.T @ twice.squeeze(-1) if needs_bias else None,
            -twice * residual if needs_target else None,
        )


def _sum_of_squares(residual: Tensor, event_dim: int) -> Tensor:
    """One pass over the residual and nothing of its size; `square().sum()` takes two passes and a copy."""
    if event_dim == 0:
        return residual.square()
    return torch.linalg.vector_norm(residual, dim=tuple(range(-event_dim, 0))).square()


# What torch and Pyro hold once per process: generators, default dtype, settings.


_LOCK = threading.RLock()


@contextmanager
def own_generators(devices: Sequence[torch.device | int] | None = None) -> Iterator[None]:
    """Draw from torch's generators as if nobody else did; afterwards they are where they were, whatever happens.

    There is one set of generators per process. Threads therefore take turns: who comes here while another thread is
    inside waits for it. A thread that draws from torch without coming here disturbs who is inside.

    Args:
        devices: Devices other than the CPU whose generators are put back, too; None: all.
    """
    with _LOCK, torch.random.fork_rng(devices):
        yield
