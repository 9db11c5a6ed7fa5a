"""Log-density factors of a pair of Pyro traces, and their direct contraction over the enumerated dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Literal, NamedTuple

import torch
from pyro import poutine
from pyro.distributions.util import is_identically_zero
from pyro.poutine.util import site_is_subsample
from torch import Tensor

from inference.objectives.terms import ELBOTerms

__all__ = ["Factor", "Factors", "Site", "collect_factors", "contract", "sample_sites"]

Site = dict[str, Any]
Kind = Literal["cells", "latent", "observed"]
Expectation = Callable[[Tensor, Tensor], Tensor]

_LARGE_TABLE = 2**20


class Factor(NamedTuple):
    """One log-density of a trace: masked, not scaled, `[*enumerated, batch]`."""

    name: str
    kind: Kind
    log_prob: Tensor


class Factors(NamedTuple):
    """All factors of a program that the direct contraction can handle.

    Attributes:
        model: Factors of the model.
        guide_cells: log q of the enumerated guide sites; their sum is log r.
        guide_latent: log q of the continuous guide sites, `[batch]`.
        scale: The one scale that all of them share.
        batch: Size of the plate.
        shared: log p - log q of the sites outside of the plate, once for the data set.
    """

    model: list[Factor]
    guide_cells: list[Tensor]
    guide_latent: list[Tensor]
    scale: float
    batch: int
    shared: Tensor | float = 0.0

    @property
    def zero(self) -> Tensor:
        """Zeros, `[batch]`."""
        return self.model[0].log_prob.new_zeros(self.batch)


def sample_sites(trace: poutine.Trace) -> Iterator[tuple[str, Site]]:
    """The sample sites of a trace, without those that plates make for subsampling."""
    for name, site in trace.nodes.items():
        if site["type"] == "sample" and not site_is_subsample(site):
            yield name, site


def collect_factors(model_trace: poutine.Trace, guide_trace: poutine.Trace) -> Factors | None:
    """The factors of two traces whose sites carry their log-densities, or None where the stock path has to do it.

    The direct contraction needs: one and the same plate, at dimension -1, around every sample site but those that the
    data set has once, which are not enumerated, masked or scaled, and in the guide reparametrised or without gradient;
    one numeric scale; no mask on an enumerated site, and all of them in the model or all in the guide, in parallel and
    over their whole support; every other guide site fully reparametrised and independent of them; a joint table of a
    size at which eliminating one site after the other would not pay.
    """
    model_sites, guide_sites = list(sample_sites(model_trace)), list(sample_sites(guide_trace))
    shared = _shared(model_sites, guide_sites)
    model_sites, guide_sites = _in_plates(model_sites), _in_plates(guide_sites)
    if shared is None or not model_sites:
        return None
    plate = _common_plate([site for _, site in model_sites + guide_sites])
    if plate is None or not _is_contractible(dict(model_sites), dict(guide_sites)):
        return None
    scale, batch = plate
    model = [Factor(name, _kind(name, site, guide_trace), _masked(site)) for name, site in model_sites]
    cells = [site["unscaled_log_prob"] for _, site in guide_sites if _is_enumerated(site)]
    latent = [_masked(site) for _, site in guide_sites if not _is_enumerated(site)]
    log_probs = [factor.log_prob for factor in model]
    if any(p.shape != (batch,) for p in latent) or any(p.shape[-1:] != (batch,) for p in log_probs + cells):
        return None
    if _elimination_pays(log_probs):
        return None
    return Factors(model, cells, latent, scale, batch, shared)


def _shared(model_sites: list[tuple[str, Site]], guide_sites: list[tuple[str, Site]]) -> Tensor | None:
    """log p - log q of the sites outside of the plate, a scalar; None where they are of another form."""
    of_model, of_guide = ([site for _, site in sites if _is_shared(site)] for sites in (model_sites, guide_sites))
    if not all(_is_plain(site) for site in of_model + of_guide):
        return None
    if not all(_is_reparametrised(site) or not site["unscaled_log_prob"].requires_grad for site in of_guide):
        return None
    log_p, log_q = ([site["unscaled_log_prob"] for site in sites] for sites in (of_model, of_guide))
    return torch.as_tensor(sum(log_p) - sum(log_q))


def _in_plates(sites: list[tuple[str, Site]]) -> list[tuple[str, Site]]:
    return [(name, site) for name, site in sites if not _is_shared(site)]


def _is_shared(site: Site) -> bool:
    return not site["cond_indep_stack"]


def _is_plain(site: Site) -> bool:
    is_single = not _is_enumerated(site) and site["unscaled_log_prob"].dim() == 0
    return is_single and site["mask"] is None and not isinstance(site["scale"], Tensor) and site["scale"] == 1.0


def _is_contractible(model_sites: dict[str, Site], guide_sites: dict[str, Site]) -> bool:
    sites = [*model_sites.values(), *guide_sites.values()]
    enumerated = {name for name, site in model_sites.items() if _is_enumerated(site)}
    enumerated_in_guide = {name for name, site in guide_sites.items() if _is_enumerated(site)}
    return (
        all("num_samples" not in site["infer"] for site in sites)
        and all(_is_enumerated(site) or _is_reparametrised(site) for site in guide_sites.values())
        and all(site["mask"] is None for site in sites if _is_enumerated(site))
        and (not enumerated_in_guide or enumerated <= enumerated_in_guide)
    )


def _is_enumerated(site: Site) -> bool:
    return site["infer"].get("_enumerate_dim") is not None


def _is_reparametrised(site: Site) -> bool:
    return is_identically_zero(site["score_parts"].score_function)


def _elimination_pays(log_probs: list[Tensor]) -> bool:
    """Whether the joint table is large, and larger than each of the factors."""
    shapes = {log_prob.shape for log_prob in log_probs if log_prob.dim() > 1}
    if len(shapes) < 2:
        return False
    return torch.broadcast_shapes(*shapes).numel() > max(_LARGE_TABLE, *(shape.numel() for shape in shapes))


def _common_plate(sites: list[Site]) -> tuple[float, int] | None:
    stacks = {tuple(map(tuple, site["cond_indep_stack"])) for site in sites}  # a frame of Pyro's hashes slowly
    if len(stacks) != 1:
        return None
    stack = sites[0]["cond_indep_stack"]
    if len(stack) != 1 or stack[0].dim != -1:
        return None
    scales = [site["scale"] for site in sites]
    if any(isinstance(scale, Tensor) for scale in scales) or len(set(scales)) != 1:
        return None
    return float(scales[0]), stack[0].size


def _kind(name: str, site: Site, guide_trace: poutine.Trace) -> Kind:
    if site["is_observed"]:
        return "observed"
    if _is_enumerated(site) or (name in guide_trace.nodes and _is_enumerated(guide_trace.nodes[name])):
        return "cells"
    return "latent"


def _masked(site: Site) -> Tensor:
    log_prob: Tensor = site["unscaled_log_prob"]
    mask = site["mask"]
    if mask is None or mask is True:
        return log_prob
    if mask is False:
        return torch.zeros_like(log_prob)
    return torch.where(mask, log_prob, 0.0)


def contract(factors: Factors) -> tuple[Tensor, ELBOTerms]:
    r"""The evidence lower bound per sample, `[batch]`, and its named terms, which are equal in sum up to rounding.

    Without enumerated guide sites: `log Σ_N exp(factors that depend on N) + the others - log q(z)`. With them, r being
    their joint density: `Σ_N r (factors that depend on N - log r) + the others - log q(z)`. Where r = 0, a term is 0
    whatever the value.
    """
    bound, terms = _contract(factors, _expectation)
    if bool((bound + terms.cell_entropy).isnan().any()):  # 0 times infinity; as good as never, and slow to exclude
        return _contract(factors, _expectation_where_possible)
    return bound, terms


def _contract(factors: Factors, expectation: Expectation) -> tuple[Tensor, ELBOTerms]:
    enumerated, plain = _split([factor.log_prob for factor in factors.model])
    bound = _sum(plain, factors) - _sum(factors.guide_latent, factors)
    joint = _sum(enumerated, factors)
    if factors.guide_cells:
        log_r = _sum(factors.guide_cells, factors)
        return bound + expectation(log_r.exp(), joint - log_r), _named_terms(factors, log_r, expectation)
    if not enumerated:
        return bound, _named_terms(factors, factors.zero.unsqueeze(0), expectation)
    log_evidence = torch.logsumexp(joint, dim=tuple(range(joint.dim() - 1)))
    return bound + log_evidence, _named_terms(factors, joint.detach() - log_evidence.detach(), expectation)


@torch.no_grad()
def _named_terms(factors: Factors, log_r: Tensor, expectation: Expectation) -> ELBOTerms:
    """Terms for log r = log q(N | X) of the guide, or log p(N | z, X) where the model enumerates; `[*cells, batch]`."""
    r = log_r.exp()
    cells, latent = (
        expectation(r, _sum([factor.log_prob for factor in factors.model if factor.kind == kind], factors))
        for kind in ("cells", "latent")
    )
    observed = {
        factor.name.removeprefix("X_"): expectation(r, factor.log_prob)
        for factor in factors.model
        if factor.kind == "observed"
    }
    return ELBOTerms(observed, cells, latent, -expectation(r, log_r), -_sum(factors.guide_latent, factors))


def _split(log_probs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    return [p for p in log_probs if p.dim() > 1], [p for p in log_probs if p.dim() == 1]


def _sum(log_probs: list[Tensor], factors: Factors) -> Tensor:
    return reduce(torch.add, log_probs) if log_probs else factors.zero


def _expectation(r: Tensor, value: Tensor) -> Tensor:
    """Σ_N r value, `[batch]`."""
    if value.dim() == 1:
        return value
    product = r * value
    return product.sum(tuple(range(product.dim() - 1)))


def _expectation_where_possible(r: Tensor, value: Tensor) -> Tensor:
    """Σ_N r value, `[batch]`, over the N that r allows."""
    return _expectation(r, torch.where(r == 0, 0.0, value)) if value.dim() > 1 else value
