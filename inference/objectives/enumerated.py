"""The three objectives as `TraceEnum_ELBO` subclasses, computed from Pyro traces of a model and a guide.

This file and `recording.py` alone lean on Pyro's private functions; pyproject.toml pins the range of versions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pyro import poutine
from pyro.distributions.score_parts import ScoreParts
from pyro.distributions.util import is_identically_zero, scale_and_mask
from pyro.infer import TraceEnum_ELBO
from pyro.infer.traceenum_elbo import _check_tmc_elbo_constraint, _compute_dice_elbo
from pyro.infer.util import is_validation_enabled
from pyro.poutine.enum_messenger import EnumMessenger
from pyro.poutine.messenger import Messenger
from pyro.poutine.replay_messenger import ReplayMessenger
from pyro.poutine.trace_messenger import TraceMessenger
from pyro.poutine.util import prune_subsample_sites, site_is_subsample
from pyro.util import check_model_guide_match, check_site_shape, check_traceenum_requirements, warn_if_nan
from torch import Tensor

from causalpima.guides.graph import MixtureNormal
from causalpima.inference.objectives.closed_form import ELBOTerms
from causalpima.inference.objectives.responsibilities import ObjectiveName
from causalpima.models import gaussian
from causalpima.models.distributions import ComponentNormal

__all__ = [
    "AnalyticLatentELBO",
    "CollapsedELBO",
    "Evaluation",
    "Factor",
    "Factors",
    "Site",
    "collect_factors",
    "contract",
    "make_elbo",
    "record",
    "sample_sites",
]


# Log-density factors of a pair of Pyro traces, and their direct contraction over the enumerated dimensions.


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
    return math.prod(np.broadcast_shapes(*shapes)) > max(_LARGE_TABLE, *(shape.numel() for shape in shapes))


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


# Runs of a Pyro program with parallel enumeration, recorded by a single handler.


def record(
    program: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first_available_dim: int | None = None,
    replayed: poutine.Trace | None = None,
) -> poutine.Trace:
    """Trace of one run, its sites enumerated in parallel where they ask for it.

    Args:
        program: Model or guide.
        args: Its arguments.
        kwargs: Its keyword arguments.
        first_available_dim: Leftmost dimension that no plate uses, minus one; None goes on after the last run.
        replayed: Trace whose values are used for sites of the same name.
    """
    recorded = _Recorder(first_available_dim, replayed or poutine.Trace())(program)
    recorded(*args, **kwargs)
    return recorded.trace


class _Recorder(EnumMessenger, TraceMessenger):
    """Enumerates, replays and traces: what Pyro does with a handler each, in the same order."""

    def __init__(self, first_available_dim: int | None, replayed: poutine.Trace) -> None:
        super().__init__(first_available_dim)
        self._replay = ReplayMessenger(replayed)

    def _pyro_sample(self, msg: Any) -> None:
        super()._pyro_sample(msg)
        self._replay._pyro_sample(msg)

    def _pyro_post_sample(self, msg: Any) -> None:
        EnumMessenger._pyro_post_sample(self, msg)
        TraceMessenger._pyro_post_sample(self, msg)


Program = Callable[..., Any]
Traces = tuple[poutine.Trace, poutine.Trace]


class Evaluation(NamedTuple):
    """One evaluation of a bound.

    Attributes:
        elbo: The bound summed over the data set (scaled by the plate), a differentiable scalar.
        terms: Its named terms per sample of the batch, detached; None where the stock contraction was used.
    """

    elbo: Tensor
    terms: ELBOTerms | None


class CollapsedELBO(TraceEnum_ELBO):
    r"""N summed out exactly at the drawn z: `log Σ_N p(N) p(z|N) p(X|z,N) - log q(z|X)` (`collapsed`).

    The value of stock `TraceEnum_ELBO`, faster: programs that keep the rule of `factors.collect_factors` are contracted
    directly, without packing, pruning or Dice; everything else is handed to Pyro's contraction. Draws are the same
    either way.

    Args:
        direct: False hands every program to Pyro's contraction.
        **options: Those of `TraceEnum_ELBO`; `max_plate_nesting` defaults to 1.
    """

    def __init__(self, direct: bool = True, **options: Any) -> None:
        super().__init__(**{"max_plate_nesting": 1, **options})
        self.direct = direct

    def evaluate(self, model: Program, guide: Program, *args: Any, **kwargs: Any) -> Evaluation:
        """The bound with its named terms, averaged over particles.

        Args:
            model: The generative program.
            guide: The inference program.
            *args: Arguments of both.
            **kwargs: Keyword arguments of both.
        """
        runs = [self._evaluate(*traces) for traces in self._raw_traces(model, guide, args, kwargs)]
        if len(runs) == self.num_particles == 1:
            return runs[0]
        return Evaluation(sum(run.elbo for run in runs) / self.num_particles, None)

    def differentiable_loss(self, model: Program, guide: Program, *args: Any, **kwargs: Any) -> Tensor:
        """Negative bound, differentiable."""
        loss = -self.evaluate(model, guide, *args, **kwargs).elbo
        warn_if_nan(loss, "loss")
        return loss

    def loss(self, model: Program, guide: Program, *args: Any, **kwargs: Any) -> float:
        """Negative bound as a number."""
        with torch.no_grad():
            return float(self.differentiable_loss(model, guide, *args, **kwargs))

    def loss_and_grads(self, model: Program, guide: Program, *args: Any, **kwargs: Any) -> float:
        """Negative bound as a number; its gradients are added to the parameters."""
        loss = self.differentiable_loss(model, guide, *args, **kwargs)
        if loss.requires_grad:
            loss.backward()
        return loss.item()

    def _raw_traces(
        self, model: Program, guide: Program, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[Traces]:
        """Traces as Pyro makes them; directly from one run of each program where that is all there is."""
        if self._may_run_once(guide):
            random_state = torch.get_rng_state()
            guide_trace = record(guide, args, kwargs, first_available_dim=-1 - int(self.max_plate_nesting))
            if not any(site["infer"].get("enumerate") == "sequential" for _, site in sample_sites(guide_trace)):
                yield record(model, args, kwargs, replayed=guide_trace), guide_trace
                return
            torch.set_rng_state(random_state)
        yield from super()._get_traces(model, guide, args, kwargs)

    def _may_run_once(self, guide: Program) -> bool:
        is_handler = isinstance(poutine.unwrap(guide), Messenger)
        return self.num_particles == 1 and not math.isinf(self.max_plate_nesting) and not is_handler

    def _get_traces(
        self, model: Program, guide: Program, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[Traces]:
        """Packed traces, for what Pyro itself computes from them (marginals, posterior draws)."""
        for traces in super()._get_traces(model, guide, args, kwargs):
            self._set_log_probs(*traces)
            yield _pack(*traces)

    def _get_trace(self, model: Program, guide: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traces:
        """Raw traces of model and guide."""
        guide_trace = poutine.trace(guide).get_trace(*args, **kwargs)
        model_trace = poutine.trace(poutine.replay(model, trace=guide_trace)).get_trace(*args, **kwargs)
        return model_trace, guide_trace

    def _evaluate(self, model_trace: poutine.Trace, guide_trace: poutine.Trace) -> Evaluation:
        if is_validation_enabled():
            check_model_guide_match(model_trace, guide_trace, self.max_plate_nesting)
        self._set_log_probs(model_trace, guide_trace)
        if is_validation_enabled():
            _check_sites(model_trace, guide_trace, self.max_plate_nesting)
        factors = collect_factors(model_trace, guide_trace) if self.direct else None
        if factors is None:
            return Evaluation(_stock_elbo(model_trace, guide_trace), None)
        bound, terms = contract(factors)
        return Evaluation(bound.sum() * factors.scale + factors.shared, terms)

    def _set_log_probs(self, model_trace: poutine.Trace, guide_trace: poutine.Trace) -> None:
        """Put `unscaled_log_prob` on every sample site, and `score_parts` on those of the guide."""
        for _, site in sample_sites(guide_trace):
            if "score_parts" not in site:
                site["score_parts"] = site["fn"].score_parts(site["value"], *site["args"], **site["kwargs"])
            site["unscaled_log_prob"] = site["score_parts"].log_prob
        for _, site in sample_sites(model_trace):
            if "unscaled_log_prob" not in site:
                site["unscaled_log_prob"] = site["fn"].log_prob(site["value"], *site["args"], **site["kwargs"])


class AnalyticLatentELBO(CollapsedELBO):
    r"""Z integrated analytically, N enumerated in the guide (`meanfield` with r*, `paper` with γ(z)).

    For every continuous guide site q(z) with a Gaussian prior p(z|N), the sampled log-ratio is replaced by its
    expectation: `E_q log p(z|N)` in the model and the entropy of q in the guide. With `N ~ r` in the guide the bound is
    `Σ_c r_c [log p(c) + E_q log p(z|c) + log p(X|z,c) - log r_c] + H[q]`. A mixture of Gaussians has no entropy in
    closed form: -log q(z) at the drawn z is in its place, the same in expectation.

    Raises:
        ValueError: A continuous guide site is neither a diagonal `ComponentNormal` nor a `MixtureNormal`, or its prior
            in the model is no `ComponentNormal` (the expectation would have no closed form here).
    """

    def _set_log_probs(self, model_trace: poutine.Trace, guide_trace: poutine.Trace) -> None:
        for name, site in sample_sites(guide_trace):
            if site["fn"].has_rsample and site["cond_indep_stack"]:  # not what the data set has once
                _integrate(name, site, model_trace.nodes.get(name, {}))
        super()._set_log_probs(model_trace, guide_trace)


def _integrate(name: str, guide_site: Site, model_site: Site) -> None:
    q, p = guide_site["fn"], model_site.get("fn")
    if not (_is_integrable(q) and isinstance(p, ComponentNormal)):
        raise ValueError(
            f"site {name!r}: expected a diagonal ComponentNormal or a mixture of such in the guide and a "
            f"ComponentNormal in the model, got {type(q).__name__} and {type(p).__name__}; use the collapsed objective "
            "for other distributions"
        )
    log_density, negative_entropy = _expectations(q, p, guide_site["value"])
    model_site["unscaled_log_prob"] = log_density.expand(np.broadcast_shapes(log_density.shape, p.batch_shape))
    negative_entropy = negative_entropy.expand(q.batch_shape)
    guide_site["score_parts"] = ScoreParts(negative_entropy, 0, negative_entropy)


def _is_integrable(q: object) -> bool:
    return isinstance(q, MixtureNormal) or (isinstance(q, ComponentNormal) and q.scale.dim() == q.loc.dim())


def _expectations(q: ComponentNormal | MixtureNormal, p: ComponentNormal, value: Tensor) -> tuple[Tensor, Tensor]:
    """E_q log p and E_q log q; of a mixture the second is log q at the drawn value, without bias."""
    if isinstance(q, ComponentNormal):
        return gaussian.expected_log_density(q.loc, q.scale, p.loc, p.scale), -gaussian.entropy(q.scale)
    terms = [
        weight * gaussian.expected_log_density(one.loc, one.scale, p.loc, p.scale)
        for weight, one in q.parameters.parts()
    ]
    return torch.stack(terms).sum(0), q.log_prob(value)


def _check_sites(model_trace: poutine.Trace, guide_trace: poutine.Trace, max_plate_nesting: int) -> None:
    """The checks of stock `TraceEnum_ELBO`."""
    check_traceenum_requirements(model_trace, guide_trace)
    _check_tmc_elbo_constraint(model_trace, guide_trace)
    for _, site in [*sample_sites(model_trace), *sample_sites(guide_trace)]:
        check_site_shape({**site, "log_prob": site["unscaled_log_prob"]}, max_plate_nesting)


def _stock_elbo(model_trace: poutine.Trace, guide_trace: poutine.Trace) -> Tensor:
    """Pyro's own contraction of two traces whose sites carry their log-densities."""
    elbo = _compute_dice_elbo(*_pack(model_trace, guide_trace))
    return elbo if isinstance(elbo, Tensor) else torch.tensor(float(elbo))


def _pack(model_trace: poutine.Trace, guide_trace: poutine.Trace) -> Traces:
    """The traces as Pyro's contraction takes them."""
    for _, site in sample_sites(guide_trace):
        site["score_parts"] = site["score_parts"].scale_and_mask(site["scale"], site["mask"])
        site["log_prob"] = site["score_parts"].log_prob
    for _, site in sample_sites(model_trace):
        site["log_prob"] = scale_and_mask(site["unscaled_log_prob"], site["scale"], site["mask"])
    guide_trace, model_trace = prune_subsample_sites(guide_trace), prune_subsample_sites(model_trace)
    guide_trace.pack_tensors()
    model_trace.pack_tensors(guide_trace.plate_to_symbol)
    return model_trace, guide_trace


def make_elbo(objective: ObjectiveName, **options: Any) -> CollapsedELBO:
    """The bound of an objective; `responsibilities.cell_posterior` gives the q(N|X) that its guide needs."""
    return CollapsedELBO(**options) if objective == "collapsed" else AnalyticLatentELBO(**options)
