"""The three objectives as `TraceEnum_ELBO` subclasses, computed from Pyro traces of a model and a guide.

This file and `recording.py` alone lean on Pyro's private functions; pyproject.toml pins the range of versions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from pyro import poutine
from pyro.distributions.score_parts import ScoreParts
from pyro.distributions.util import scale_and_mask
from pyro.infer import TraceEnum_ELBO
from pyro.infer.traceenum_elbo import _check_tmc_elbo_constraint, _compute_dice_elbo
from pyro.infer.util import is_validation_enabled
from pyro.poutine.messenger import Messenger
from pyro.poutine.util import prune_subsample_sites
from pyro.util import check_model_guide_match, check_site_shape, check_traceenum_requirements, warn_if_nan
from torch import Tensor

from guides.mixture_parameters import MixtureNormal
from inference.objectives.factors import Site, collect_factors, contract, sample_sites
from inference.objectives.recording import record
from inference.objectives.responsibilities import ObjectiveName
from inference.objectives.terms import ELBOTerms
from models import gaussian
from models.distributions import ComponentNormal

__all__ = ["AnalyticLatentELBO", "CollapsedELBO", "Evaluation", "make_elbo"]

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
    model_site["unscaled_log_prob"] = log_density.expand(torch.broadcast_shapes(log_density.shape, p.batch_shape))
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
