"""Bounds and sums of one model and guide as pure functions of the noise, to be evaluated over a stack.

Their values are those of the Pyro programs (docs/objectives.md): the closed forms of `inference.objectives`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from guides.guide import Guide
from inference.objectives import closed_form
from inference.objectives.responsibilities import (
    ObjectiveName,
    components,
    latent_free_log_likelihood,
    log_likelihood,
)
from inference.objectives.terms import ELBOTerms
from inference.training.pretraining import pretraining_terms
from models.batch import Batch
from models.causal_pima import CausalPIMA

__all__ = ["Named", "joint_bound", "joint_terms", "pretraining_bound"]

Named = dict[str, Tensor]
"""Terms of a bound by name, `[batch]` each."""


def pretraining_bound(batch: Batch) -> Callable[[CausalPIMA, Guide, Tensor], Named]:
    """The program of `pretraining_terms` on a batch."""
    return lambda model, guide, noise: pretraining_terms(model, guide, batch, noise).parts()


def joint_bound(objective: ObjectiveName, batch: Batch) -> Callable[[CausalPIMA, Guide, Tensor], tuple[Named, Tensor]]:
    """The program of `joint_terms` on a batch, with the log-prior of the graph."""

    def program(model: CausalPIMA, guide: Guide, noise: Tensor) -> tuple[Named, Tensor]:
        return joint_terms(objective, model, guide, batch, noise).parts(), model.graph.log_prior()

    return program


def joint_terms(objective: ObjectiveName, model: CausalPIMA, guide: Guide, batch: Batch, noise: Tensor) -> ELBOTerms:
    """The bound that joint training maximises, at `z = μ + σ ε`.

    Args:
        objective: Its name.
        model: The model.
        guide: The guide.
        batch: The samples.
        noise: ε, `[batch, J]`.
    """
    posterior = guide.encode(batch)
    sample, mixture = posterior.draw(noise), components(model, batch)
    log_likelihoods = {name: log_likelihood(model, name, sample, batch) for name in model.decoders}
    if objective == "meanfield":
        free = latent_free_log_likelihood(model, sample, batch)
        return closed_form.meanfield(posterior.loc, posterior.scale, mixture, log_likelihoods, free)
    bound = closed_form.collapsed if objective == "collapsed" else closed_form.paper
    return bound(sample, posterior.loc, posterior.scale, mixture, log_likelihoods)
