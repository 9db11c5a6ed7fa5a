"""The three objectives in closed form: pure functions of tensors that know nothing of Pyro.

Source: paper, equation 8 and appendix D, in the right reading of docs/errata.md; docs/objectives.md derives what the
three have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from causalpima.models import gaussian

__all__ = [
    "Components",
    "ELBOTerms",
    "best_log_responsibilities",
    "collapsed",
    "expected_log_density",
    "geometric_log_responsibilities",
    "meanfield",
    "paper",
    "with_responsibilities",
]


# The named terms of an evidence lower bound.


@dataclass(frozen=True)
class ELBOTerms:
    r"""One evidence lower bound in nats, split into what it consists of; every term is `[batch]`.

    With r = q(N|X) (for `collapsed`: p(N | z, X), for which the split is exact) and z ~ q(Z|X):

    Attributes:
        reconstruction: Per modality, Σ_c r_c log p(X_m | z, c).
        cells: Σ_c r_c log p(c), p(c) from the graph (and the shares of the components within cells).
        latent: Σ_c r_c log p(z | c) at the sample (`collapsed`), or its expectation under q(Z|X).
        cell_entropy: -Σ_c r_c log r_c.
        latent_entropy: -log q(z | X) at the sample (`collapsed`, and wherever q(Z|X) is a mixture), or the entropy of
            q(Z|X).
    """

    reconstruction: Mapping[str, Tensor]
    cells: Tensor
    latent: Tensor
    cell_entropy: Tensor
    latent_entropy: Tensor

    @property
    def total(self) -> Tensor:
        """The bound per sample, `[batch]`: the sum of all terms."""
        return sum(self.reconstruction.values(), self.cells + self.latent + self.cell_entropy + self.latent_entropy)

    def times(self, factor: float) -> ELBOTerms:
        """Every term times a number; the terms themselves where it is 1."""
        if factor == 1:
            return self
        reconstruction = {name: factor * value for name, value in self.reconstruction.items()}
        others = (factor * value for value in (self.cells, self.latent, self.cell_entropy, self.latent_entropy))
        return ELBOTerms(reconstruction, *others)

    def parts(self) -> dict[str, Tensor]:
        """Every term by name, `reconstruction/NAME` per modality, `[batch]` each."""
        parts = {f"reconstruction/{name}": value for name, value in self.reconstruction.items()}
        return parts | {name: getattr(self, name) for name in ("cells", "latent", "cell_entropy", "latent_entropy")}

    def sums(self) -> dict[str, float]:
        """Sum of every term over the batch, named as in `parts`."""
        parts = self.parts()
        stacked = torch.stack([value.detach().sum() for value in parts.values()])
        return dict(zip(parts, stacked.tolist(), strict=True))


class Components(NamedTuple):
    """The mixture with its weights, K components.

    Attributes:
        log_weight: log(p(N = cell of k) π_{k|cell}), `[K]`; `[B, K]` where samples have p(N | e) of environments.
        loc: `[K, J]`.
        scale: `[K, J]` standard deviations or `[K, J, J]` Cholesky factors.
        cell: Index of the cell of each component, `[K]`.
    """

    log_weight: Tensor
    loc: Tensor
    scale: Tensor
    cell: Tensor


def _per_component(log_likelihood: Tensor, components: Components) -> Tensor:
    """`[B]` or `[B, C]` -> `[B, K]`."""
    if log_likelihood.dim() == 1:
        return log_likelihood.unsqueeze(-1).expand(-1, len(components.cell))
    return log_likelihood[:, components.cell]


def _log_density(value: Tensor, components: Components, present: Tensor | None) -> Tensor:
    """log N_k(value) over the dimensions that are present, `[B, K]`."""
    mask = None if present is None else present.unsqueeze(-2)
    return gaussian.log_density(value.unsqueeze(-2), components.loc, components.scale, mask)


def expected_log_density(q_loc: Tensor, q_scale: Tensor, components: Components, present: Tensor | None) -> Tensor:
    """E_q log N_k(z) over the dimensions that are present, `[B, K]`."""
    mask = None if present is None else present.unsqueeze(-2)
    moments = q_loc.unsqueeze(-2), q_scale.unsqueeze(-2)
    return gaussian.expected_log_density(*moments, components.loc, components.scale, mask)


def _weighted_terms(
    log_r: Tensor, log_likelihoods: Mapping[str, Tensor], components: Components, latent: Tensor, latent_entropy: Tensor
) -> ELBOTerms:
    return ELBOTerms(
        reconstruction={m: _mean(log_r, _per_component(value, components)) for m, value in log_likelihoods.items()},
        cells=_mean(log_r, components.log_weight),
        latent=_mean(log_r, latent),
        cell_entropy=-_mean(log_r, log_r),
        latent_entropy=latent_entropy,
    )


def _mean(log_r: Tensor, value: Tensor) -> Tensor:
    """Σ_k r_k value_k; where r = 0, the term is 0 whatever the value (a component of weight zero)."""
    return (log_r.exp() * torch.where(log_r == -torch.inf, 0.0, value)).sum(-1)


def collapsed(
    sample: Tensor,
    q_loc: Tensor,
    q_scale: Tensor,
    components: Components,
    log_likelihoods: Mapping[str, Tensor],
    present: Tensor | None = None,
) -> ELBOTerms:
    r"""N summed out exactly at a drawn z: `log Σ_k w_k N_k(z) p(X|z,c_k) - log q(z|X)`, what enumeration computes.

    Args:
        sample: The drawn z, `[B, J]`.
        q_loc: Mean of q(Z|X), `[B, J]`.
        q_scale: Standard deviation of q(Z|X), `[B, J]`.
        components: The mixture.
        log_likelihoods: Per modality, log p(X_m | z) `[B]`, or log p(X_m | z, c) `[B, C]`; zero where absent.
        present: Bool `[B, J]`: which dimensions of Z are there, the others being marginalised (the blocks of absent
            modalities, with Cholesky factors of blocks); None: all.
    """
    log_density = _log_density(sample, components, present)
    log_terms = components.log_weight + log_density
    for value in log_likelihoods.values():
        log_terms = log_terms + _per_component(value, components)
    log_r = torch.log_softmax(log_terms, dim=-1)
    latent_entropy = -gaussian.log_density(sample, q_loc, q_scale, present)
    return _weighted_terms(log_r, log_likelihoods, components, log_density, latent_entropy)


def with_responsibilities(
    log_r: Tensor,
    q_loc: Tensor,
    q_scale: Tensor,
    components: Components,
    log_likelihoods: Mapping[str, Tensor],
    present: Tensor | None = None,
) -> ELBOTerms:
    r"""Mean field, z integrated analytically against the mixture, for any q(N|X) = r.

    `Σ_k r_k [log w_k + E_q log N_k(z) + log p(X|z,c_k) - log r_k] + H[q]`.

    Args:
        log_r: log r per component, `[B, K]`, normalised.
        q_loc: Mean of q(Z|X), `[B, J]`.
        q_scale: Standard deviation of q(Z|X), `[B, J]`.
        components: The mixture.
        log_likelihoods: As for `collapsed`.
        present: As for `collapsed`.
    """
    expected = expected_log_density(q_loc, q_scale, components, present)
    return _weighted_terms(log_r, log_likelihoods, components, expected, gaussian.entropy(q_scale, present))


def geometric_log_responsibilities(
    q_loc: Tensor,
    q_scale: Tensor,
    components: Components,
    latent_free_log_likelihood: Tensor | None = None,
    present: Tensor | None = None,
) -> Tensor:
    r"""log r*, the best q(N|X) of the mean field, `r*_k ∝ w_k exp E_q log N_k(z)` (Falck et al. 2021), `[B, K]`.

    Args:
        q_loc: Mean of q(Z|X), `[B, J]`.
        q_scale: Standard deviation of q(Z|X), `[B, J]`.
        components: The mixture.
        latent_free_log_likelihood: Sum over modalities of log p(X_m | c) `[B, C]` for decoders that do not depend on z.
        present: As for `collapsed`.
    """
    expected = expected_log_density(q_loc, q_scale, components, present)
    return best_log_responsibilities(expected, components, latent_free_log_likelihood)


def best_log_responsibilities(
    expected: Tensor, components: Components, latent_free_log_likelihood: Tensor | None = None
) -> Tensor:
    """log r* of any q(Z|X), from E_q log N_k(z) `[B, K]`; see `geometric_log_responsibilities`."""
    logits = components.log_weight + expected
    if latent_free_log_likelihood is not None:
        logits = logits + _per_component(latent_free_log_likelihood, components)
    return torch.log_softmax(logits, dim=-1)


def meanfield(
    q_loc: Tensor,
    q_scale: Tensor,
    components: Components,
    log_likelihoods: Mapping[str, Tensor],
    latent_free_log_likelihood: Tensor | None = None,
    present: Tensor | None = None,
) -> ELBOTerms:
    """The mean-field objective at r = r*; see `with_responsibilities` and `geometric_log_responsibilities`."""
    log_r = geometric_log_responsibilities(q_loc, q_scale, components, latent_free_log_likelihood, present)
    return with_responsibilities(log_r, q_loc, q_scale, components, log_likelihoods, present)


def paper(
    sample: Tensor,
    q_loc: Tensor,
    q_scale: Tensor,
    components: Components,
    log_likelihoods: Mapping[str, Tensor],
    present: Tensor | None = None,
) -> ELBOTerms:
    r"""The paper's objective: r = γ(z) = p(N|z) at the drawn z, all other terms integrated (paper, equations 8 and 9).

    Twice this bound equals the paper's abbreviated loss plus `J - Σ_m D_m log 2π` (docs/errata.md item 2).

    Args:
        sample: The drawn z, `[B, J]`.
        q_loc: Mean of q(Z|X), `[B, J]`.
        q_scale: Standard deviation of q(Z|X), `[B, J]`.
        components: The mixture.
        log_likelihoods: As for `collapsed`.
        present: As for `collapsed`.
    """
    log_r = torch.log_softmax(components.log_weight + _log_density(sample, components, present), dim=-1)
    return with_responsibilities(log_r, q_loc, q_scale, components, log_likelihoods, present)
