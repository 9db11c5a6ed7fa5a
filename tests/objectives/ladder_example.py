"""Small models, guides and batches for the ladder of objectives; values and gradients of a loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from pyro.infer import TraceEnum_ELBO
from pyro.poutine.messenger import Messenger
from torch import Tensor, nn

from causalpima.guides.encoders import Encoder, GaussianParameters, mlp_encoder
from causalpima.guides.guide import CellLogits, CellPosterior, Guide
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.distributions import ComponentNormal, IsotropicNormal
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import Covariance, GaussianMixture
from causalpima.models.program import CausalPIMA, CellSites

LATENT_DIM = 2
SHAPES = {"image": (3, 2), "curve": (5,), "assay": (4,)}


class Case(NamedTuple):
    """What a model of the ladder is made of."""

    outcomes: tuple[int, ...] = (2, 3)
    covariance: Covariance = "diagonal"
    per_cell: bool = False
    latent_free: bool = False
    several: bool = False
    sites: CellSites = "cells"


CASES = {
    "diagonal": Case(),
    "full, a site per node": Case(covariance="full", sites="nodes"),
    "decoders per cell": Case(per_cell=True, sites="nodes"),
    "a decoder on N alone": Case(covariance="full", latent_free=True),
    "everything": Case((2, 3, 2), "full", per_cell=True, latent_free=True, several=True, sites="nodes"),
}


class Example(NamedTuple):
    """A model with its encoders, a batch with missing modalities, and the noise behind z."""

    model: CausalPIMA
    encoders: dict[str, Encoder]
    batch: Batch
    noise: Tensor

    @property
    def scale(self) -> float:
        return self.batch.n_samples / len(self.batch)

    def guide(self, cell_posterior: CellPosterior | None = None) -> Guide:
        model = self.model
        return Guide(self.encoders, cell_posterior=cell_posterior, node_names=model.node_names, sites=model.sites)

    def posterior(self) -> GaussianParameters:
        posterior = self.guide().encode(self.batch)
        assert isinstance(posterior, GaussianParameters)
        return posterior

    def sample(self) -> Tensor:
        loc, scale = self.posterior().loc, self.posterior().scale
        return loc + scale * self.noise

    def leaves(self) -> dict[str, Tensor]:
        """All that gradients are compared for: parameters of model and guide, means and scales of the components."""
        mixture = self.model.mixture
        leaves = {"component_loc": mixture.component_loc, "component_scale": mixture.component_scale}
        leaves |= dict(self.model.named_parameters())
        return leaves | dict(nn.ModuleDict(self.encoders).named_parameters(prefix="encoders"))

    def part(self, rows: slice) -> Example:
        """The same with some of the samples of the batch only."""
        values = {m: value[rows] for m, value in self.batch.values.items()}
        present = {m: None if mask is None else mask[rows] for m, mask in self.batch.present.items()}
        batch = Batch(values, present, self.batch.index[rows], self.batch.n_samples)
        return self._replace(batch=batch, noise=self.noise[rows])


class CurvePerCell(Decoder):
    """A curve for each cell, whatever z is: what a physics decoder looks like to the objectives."""

    def __init__(self, n_cells: int, length: int) -> None:
        super().__init__()
        self.event_shape = torch.Size([length])
        self.depends_on_cell, self.depends_on_latent = True, False
        self.curves = nn.Parameter(torch.randn(n_cells, length))
        self.log_scale = nn.Parameter(torch.tensor(-0.4))

    def forward(self, latent: Tensor, cell: Tensor) -> IsotropicNormal:
        return IsotropicNormal(self.curves[cell], self.log_scale.exp(), 1, validate_args=False)


class FixedNoise(Messenger):
    """z = loc + scale * noise, instead of a draw."""

    def __init__(self, noise: Tensor) -> None:
        super().__init__()
        self.noise = noise

    def _pyro_sample(self, msg: Any) -> None:
        if isinstance(msg["fn"], ComponentNormal):
            msg["value"] = msg["fn"].loc + msg["fn"].scale * self.noise
            msg["done"] = True


def build(case: Case, seed: int = 0) -> Example:
    """A model with overlapping components, and 7 of 20 samples: two modalities in part, one nowhere."""
    torch.manual_seed(seed)
    model = CausalPIMA(_graph(case), _mixture(case), _decoders(case), sites=case.sites)
    encoders = {m: mlp_encoder(shape, (5,), LATENT_DIM) for m, shape in SHAPES.items()}
    values = {m: torch.randn(7, *shape) for m, shape in SHAPES.items()}
    present = {
        "image": torch.tensor([1, 1, 0, 1, 1, 0, 1]).bool(),
        "curve": torch.tensor([1, 0, 1, 1, 1, 1, 0]).bool(),
        "assay": torch.zeros(7).bool(),
    }
    batch = Batch(values, present, torch.tensor([3, 19, 0, 7, 11, 2, 5]), 20)
    return Example(model, encoders, batch, torch.randn(7, LATENT_DIM))


def _graph(case: Case) -> HodgeGraph:
    """Causes come last, so that the causal order is not the order of the nodes."""
    graph = HodgeGraph(case.outcomes, temperature=0.7)
    n = len(case.outcomes)
    graph.node_score.data = torch.linspace(0.9, -0.4, n)
    graph.conditional_logits.data = torch.randn(n, *case.outcomes)
    return graph


def _mixture(case: Case) -> GaussianMixture:
    n_cells = int(torch.tensor(case.outcomes).prod())
    mixture = GaussianMixture(n_cells, LATENT_DIM, case.covariance)
    cell = torch.arange(n_cells)
    if case.several:
        cell = torch.cat([cell, torch.tensor([0, 0, 3, 5])])
    n, weight = len(cell), torch.rand(len(cell)) + 0.2
    scale = torch.rand(n, LATENT_DIM) + 0.5
    if case.covariance == "full":
        scale = torch.diag_embed(scale) + torch.tril(torch.randn(n, LATENT_DIM, LATENT_DIM), diagonal=-1)
    total = torch.zeros(n_cells).index_add(0, cell, weight)
    mixture.replace(torch.randn(n, LATENT_DIM), scale, cell, (weight / total[cell]).log())
    mixture.component_loc.requires_grad_()
    mixture.component_scale.requires_grad_()
    return mixture


def _decoders(case: Case) -> dict[str, Decoder]:
    n_cells = int(torch.tensor(case.outcomes).prod())
    decoders: dict[str, Decoder] = {
        m: mlp_decoder(LATENT_DIM, shape, (5,), DecoderVariance("learned", variance))
        for (m, shape), variance in zip(SHAPES.items(), (0.5, 0.8, 0.3), strict=True)
    }
    if case.per_cell:
        decoders["image"] = mlp_decoder(
            LATENT_DIM, SHAPES["image"], (5,), DecoderVariance("learned", 0.5), n_cells=n_cells
        )
    if case.latent_free:
        decoders["curve"] = CurvePerCell(n_cells, SHAPES["curve"][0])
    return decoders


def given(model: CausalPIMA, log_r: Tensor) -> CellLogits:
    """q(N | X), and q(component | N, X), from log r per component `[batch, K]`."""
    cells = model.mixture.component_cell
    members = [torch.nonzero(cells == c).squeeze(-1) for c in range(model.mixture.n_cells)]
    width = max(len(rows) for rows in members)
    cell = torch.stack([log_r[:, rows].logsumexp(-1) for rows in members], dim=-1)
    padded = [nn.functional.pad(log_r[:, rows], (0, width - len(rows)), value=-1e4) for rows in members]
    return CellLogits(cell.unflatten(-1, model.graph.outcomes), None if width == 1 else torch.stack(padded, dim=1))


class Outcome(NamedTuple):
    """A loss and its gradients (none where only a number is to be had)."""

    value: float
    gradients: dict[str, Tensor] | None


def loss(example: Example, bound: Tensor) -> Tensor:
    """The loss over the data set that belongs to a bound per sample of the batch."""
    return -example.scale * bound.sum()


def outcome_of(loss: Tensor, leaves: Mapping[str, Tensor]) -> Outcome:
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return Outcome(loss.item(), dict(zip(leaves, gradients, strict=True)))


def at_the_noise(elbo: Callable[..., Tensor], example: Example, guide: Callable[..., Any]) -> Tensor:
    return elbo(example.model, FixedNoise(example.noise)(guide), example.batch)


def stock(example: Example, guide: Callable[..., Any]) -> Tensor:
    """The loss of Pyro's own ELBO."""
    return at_the_noise(TraceEnum_ELBO(max_plate_nesting=1).differentiable_loss, example, guide)


def three_ways(elbo: TraceEnum_ELBO, guide: Callable[..., Any], example: Example, **more: Tensor) -> list[Outcome]:
    """`loss`, `differentiable_loss` and `loss_and_grads` at the noise of the example."""
    arguments = (example.model, FixedNoise(example.noise)(guide), example.batch)
    leaves = example.leaves() | more
    number = Outcome(elbo.loss(*arguments), None)
    differentiable = outcome_of(elbo.differentiable_loss(*arguments), leaves)
    for leaf in leaves.values():
        leaf.grad = None
    value = elbo.loss_and_grads(*arguments)
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in leaves.items()}
    return [number, differentiable, Outcome(value, gradients)]


def assert_same(actual: Outcome, expected: Outcome) -> None:
    """Values to 1e-10, every gradient to 1e-8."""
    torch.testing.assert_close(actual.value, expected.value, rtol=0, atol=1e-10)
    if actual.gradients is not None:
        assert actual.gradients.keys() == expected.gradients.keys()  # type: ignore[union-attr]
        torch.testing.assert_close(actual.gradients, expected.gradients, rtol=0, atol=1e-8)
