"""q(N | X) as the guide needs it for each objective: pure functions of model, q(Z|X), z and batch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor

from causalpima.guides.fusion import LatentPosterior
from causalpima.guides.guide import CellLogits, CellPosterior
from causalpima.inference.objectives import closed_form
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import Decoder
from causalpima.models.program import CausalPIMA

__all__ = [
    "GivenLatent",
    "ObjectiveName",
    "cell_posterior",
    "components",
    "given_latent",
    "log_likelihood",
    "log_responsibilities",
]


ObjectiveName = Literal["collapsed", "meanfield", "paper"]


def components(model: CausalPIMA, batch: Batch | None = None) -> closed_form.Components:
    """The mixture of a model with its weights; those of the environments of a batch, where the model knows these."""
    mixture, log_weight = model.mixture, model.log_weight(batch)
    return closed_form.Components(log_weight, mixture.component_loc, mixture.component_scale, mixture.component_cell)


def latent_free_log_likelihood(model: CausalPIMA, sample: Tensor, batch: Batch) -> Tensor | None:
    """Sum of log p(X_m | c), `[B, C]`, over the decoders on N alone; None if there are none."""
    total = None
    for name, decoder in model.decoders.items():
        if decoder.depends_on_cell and not decoder.depends_on_latent:
            value = log_likelihood(model, name, sample, batch)
            total = value if total is None else total + value
    return total


def log_likelihood(model: CausalPIMA, name: str, sample: Tensor, batch: Batch, reported: bool = False) -> Tensor:
    """log p(X_m | z) `[B]`, or log p(X_m | z, c) `[B, C]` for decoders per cell, times the modality's weight.

    Zero where absent; over the measured elements. As q(N|X) has it, or as it is `reported` (`Decoder.reported`).
    """
    decoder = model.decoders[name]
    cell = torch.arange(model.mixture.n_cells, device=sample.device).unsqueeze(-1)
    log_prob = model.likelihood(name, sample, cell, batch, reported).log_prob(batch.values[name])
    present = batch.present[name]
    if present is not None:
        log_prob = torch.where(present, log_prob, 0.0)
    return log_prob.expand(len(cell), len(batch)).T if decoder.depends_on_cell else log_prob


def log_responsibilities(
    objective: ObjectiveName, model: CausalPIMA, posterior: LatentPosterior, sample: Tensor, batch: Batch
) -> Tensor:
    """log q(component | X), `[B, K]`: the q(N|X) that belongs to each objective.

    `meanfield`: r*. `paper`: γ(z). `collapsed`: p(N | z, X), the exact posterior given z. Where a batch has
    labels, all of them are given these.
    """
    parts, present = components(model, batch), model.mixture.present(batch)
    allowed = batch.log_allowed(sample)
    if objective == "meanfield":
        free = latent_free_log_likelihood(model, sample, batch)
        free = free if allowed is None else allowed if free is None else free + allowed
        return closed_form.best_log_responsibilities(_expected(posterior, parts, present), parts, free)
    logits = parts.log_weight + model.mixture.log_density(sample, present)
    if allowed is not None:
        logits = logits + allowed[:, parts.cell]
    if objective == "collapsed":
        for name, decoder in model.decoders.items():
            if decoder.depends_on_cell:
                logits = logits + log_likelihood(model, name, sample, batch)[:, parts.cell]
    return torch.log_softmax(logits, dim=-1)


def _expected(posterior: LatentPosterior, parts: closed_form.Components, present: Tensor | None) -> Tensor:
    """E_q log N_k(z), `[B, K]`, exact for mixtures, too."""
    terms = [
        weight.unsqueeze(-1) * closed_form.expected_log_density(one.loc, one.scale, parts, present)
        for weight, one in posterior.parts()
    ]
    return torch.stack(terms).sum(0)


def _cell_logits(
    objective: ObjectiveName, model: CausalPIMA, posterior: LatentPosterior, sample: Tensor, batch: Batch
) -> CellLogits | None:
    if model.prior_in_force is not None:
        return None
    log_r = log_responsibilities(objective, model, posterior, sample, batch)
    mixture = model.mixture
    cell = mixture.logsumexp_to_cells(log_r).reshape(len(log_r), *model.graph.outcomes)
    if mixture.n_components == mixture.n_cells:
        return CellLogits(cell, None)
    return CellLogits(cell, mixture.spread_over_cells(log_r))


def cell_posterior(objective: ObjectiveName, model: CausalPIMA) -> CellPosterior | None:
    """What `Guide(cell_posterior=...)` needs for an objective; None where N is enumerated in the model."""
    posterior: CellPosterior = partial(_cell_logits, objective, model)
    return None if objective == "collapsed" else posterior


# What a model says at given latents, cell by cell: p(N | Z, X), and likelihoods without the weights of training.


class GivenLatent(NamedTuple):
    """Log-densities at latents, one per sample of the batch, in float64.

    Attributes:
        log_prior: log p(Z = z, N = c), under p(N | e) where a sample is of such an environment, `[B, C]`.
        cell_logits: log p(N = c | Z = z, X) up to a constant, `[B, C]`: the likelihoods to the power of their weights
            and with one variance per modality, as training has them.
        log_likelihood: Per modality log p(X_m | z, c), `[B, C]`, or `[B, 1]` where N does not matter: without weights,
            with the variances that are reported, on the scale of the model; zero where absent.
    """

    log_prior: Tensor
    cell_logits: Tensor
    log_likelihood: Mapping[str, Tensor]

    def log_joint(self) -> Tensor:
        """log p(X, Z = z) = log Σ_c p(z, c) ∏_m p(X_m | z, c), `[B]`, without weights."""
        return torch.logsumexp(sum(self.log_likelihood.values(), self.log_prior), dim=1)


def given_latent(model: CausalPIMA, latent: Tensor, batch: Batch) -> GivenLatent:
    """Evaluate a model at latents.

    Args:
        model: The model.
        latent: `[B, J]`. The block of an absent modality is left out of the densities.
        batch: Samples, `B` of them.
    """
    mixture = model.mixture
    weight = model.log_weight(batch)
    prior = mixture.logsumexp_to_cells(weight + mixture.log_density(latent, mixture.present(batch))).double()
    of_cells = [name for name, decoder in model.decoders.items() if cast(Decoder, decoder).depends_on_cell]
    logits = sum((log_likelihood(model, name, latent, batch).double() for name in of_cells), prior)
    reported = {name: log_likelihood(model, name, latent, batch, reported=True) for name in model.decoders}
    return GivenLatent(prior, logits, {name: _by_cell(value) / model.weights[name] for name, value in reported.items()})


def _by_cell(value: Tensor) -> Tensor:
    return value.double() if value.dim() == 2 else value.double().unsqueeze(1)
