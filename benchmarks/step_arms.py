"""One training step of the same model and guide, written in the ways that `step_time.py` compares.

Every arm has its own copy of the same networks and the same graph, with the same initial values, and draws z from
torch's generator, so that arms which start from the same seed have the same loss and the same gradients.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import cast

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, TraceEnum_ELBO
from torch import Tensor, nn

from causalpima.guides.encoders import mlp_encoder
from causalpima.guides.guide import Guide
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.models import gaussian
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.distributions import isotropic_log_density
from causalpima.models.gaussian import linear_squared_error
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA, register_parameters

__all__ = ["ARMS", "Arm"]

EVENT, HIDDEN, LATENT, LEARNING_RATE = (28, 28, 3), (128, 64, 32, 16), 2, 1e-3
VARIANCE = 0.05


class Arm(nn.Module, ABC):
    """One way to take a step; owns the networks of the circles example, a full graph over binary nodes and a mixture.

    Args:
        n_nodes: Number of binary nodes; there are `2 ** n_nodes` cells.

    Attributes:
        optimiser: What moves the parameters.
        fused: Whether torch's Adam takes all parameters in one kernel.
        checked: Whether loss and gradients are those of the other arms.
        parameters_in_modules: Whether Pyro leaves parameters where they are, as training has it.
    """

    optimiser = "torch Adam, fused"
    fused = True
    checked = True
    parameters_in_modules = True

    def __init__(self, n_nodes: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.graph = HodgeGraph((2,) * n_nodes)
        self.mixture = GaussianMixture(self.graph.n_cells, LATENT)
        self.encoder = mlp_encoder(EVENT, HIDDEN, LATENT)
        self.decoder = mlp_decoder(LATENT, EVENT, HIDDEN[::-1], DecoderVariance("fixed", VARIANCE))
        self.prepare()

    def prepare(self) -> None:
        """Make what the step needs besides networks, graph and mixture."""
        self.adam = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE, fused=self.fused)

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """Negative bound per sample, differentiable."""

    def backward(self, batch: Batch) -> float:
        """Negative bound per sample; its gradients are left in the parameters."""
        loss = self.loss(batch)
        loss.backward()
        return loss.item()

    def step(self, batch: Batch) -> None:
        """One training step."""
        self.adam.zero_grad()
        self.backward(batch)
        self.adam.step()

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of q(Z|X), `[batch, latent]`."""
        loc, log_variance = self.encoder(batch.values["image"])
        return loc, (0.5 * log_variance).exp()


class Ours(Arm):
    """`CollapsedELBO` as training calls it."""

    def prepare(self) -> None:
        """Wrap networks, graph and mixture in the model and the guide of this package."""
        super().prepare()
        self.model = CausalPIMA(self.graph, self.mixture, {"image": self.decoder})
        self.guide = Guide({"image": self.encoder})
        self.elbo = make_elbo("collapsed")

    def loss(self, batch: Batch) -> Tensor:
        """Negative bound per sample, differentiable."""
        return -self.elbo.evaluate(self.model, self.guide, batch).elbo / batch.n_samples


class StockFused(Arm):
    """Stock `TraceEnum_ELBO` on a plain Pyro program, parameters in their modules."""

    def prepare(self) -> None:
        """Make the bound."""
        super().prepare()
        self.elbo = TraceEnum_ELBO(max_plate_nesting=1)

    def loss(self, batch: Batch) -> Tensor:
        """Negative bound per sample, differentiable."""
        return self.elbo.differentiable_loss(self.model, self.guide, batch) / batch.n_samples

    def model(self, batch: Batch) -> None:
        """The generative program as a user of Pyro writes it."""
        register_parameters("decoder", self.decoder)
        register_parameters("graph", self.graph)
        logits = self.graph.log_joint().reshape(-1)
        loc, scale = self.mixture.component_loc, self.mixture.component_scale
        with pyro.plate("data", batch.n_samples, subsample=batch.index):
            cell = pyro.sample("N", dist.Categorical(logits=logits), infer={"enumerate": "parallel"})
            latent = pyro.sample("Z", dist.Normal(loc[cell], scale[cell]).to_event(1))
            mean = self.decoder.head(self.decoder.body(latent))
            x = batch.values["image"].flatten(1)
            pyro.sample("X", dist.Normal(mean, self.decoder.variance.scale()).to_event(1), obs=x)

    def guide(self, batch: Batch) -> None:
        """The inference program as a user of Pyro writes it."""
        register_parameters("encoder", self.encoder)
        loc, scale = self.encode(batch)
        with pyro.plate("data", batch.n_samples, subsample=batch.index):
            pyro.sample("Z", dist.Normal(loc, scale).to_event(1))


class Stock(StockFused):
    """The same programs with `pyro.infer.SVI` and `pyro.optim.Adam`, parameters in Pyro's store."""

    optimiser = "pyro.optim.Adam, one per parameter"
    parameters_in_modules = False

    def prepare(self) -> None:
        """Make the inference object."""
        elbo = TraceEnum_ELBO(max_plate_nesting=1)
        self.svi = SVI(self.model, self.guide, pyro.optim.Adam({"lr": LEARNING_RATE}), elbo)

    def backward(self, batch: Batch) -> float:
        """Negative bound per sample; its gradients, of the sum over the data set, are made per sample."""
        loss = self.svi.loss_and_grads(self.model, self.guide, batch)
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad /= batch.n_samples
        return loss / batch.n_samples

    def step(self, batch: Batch) -> None:
        """One training step."""
        self.svi.step(batch)


class HandSame(Arm):
    """The closed form in plain torch with our kernels."""

    def loss(self, batch: Batch) -> Tensor:
        """Negative bound per sample, differentiable."""
        loc, scale = self.encode(batch)
        z = loc + scale * torch.randn_like(loc)
        head = cast(nn.Linear, self.decoder.head)
        error = linear_squared_error(self.decoder.body(z), head.weight, head.bias, batch.values["image"].flatten(1))
        likelihood = isotropic_log_density(error, self.decoder.variance.scale(), head.out_features)
        log_weight = self.graph.log_joint().reshape(-1)
        prior = torch.logsumexp(log_weight + self.mixture.log_density(z), -1)
        return (gaussian.log_density(z, loc, scale) - prior - likelihood).mean()


class HandNaive(Arm):
    """The closed form in plain torch, written without a thought of speed."""

    optimiser, fused = "torch Adam, default", False

    def loss(self, batch: Batch) -> Tensor:
        """Negative bound per sample, differentiable."""
        loc, scale = self.encode(batch)
        z = loc + scale * torch.randn_like(loc)
        mean = self.decoder.head(self.decoder.body(z))
        likelihood = _log_normal(batch.values["image"].flatten(1), mean, self.decoder.variance.scale())
        mixture = _log_normal(z.unsqueeze(1), self.mixture.component_loc, self.mixture.component_scale)
        prior = torch.logsumexp(self.graph.log_joint().reshape(-1) + mixture, -1)
        return (_log_normal(z, loc, scale) - prior - likelihood).mean()


class Networks(Arm):
    """Forward and backward of the networks alone: no likelihood, no mixture, no graph, no optimiser."""

    optimiser, checked = "none", False

    def prepare(self) -> None:
        """Nothing yet: the gradient is made for the first batch."""
        self.gradient = torch.empty(0)

    def loss(self, batch: Batch) -> Tensor:
        """No bound; the mean of the images, for the sake of the interface."""
        return self.decoder.head(self.decoder.body(self.encode(batch)[0])).mean()

    def step(self, batch: Batch) -> None:
        """Forward and backward, from a gradient that is there already."""
        if len(self.gradient) != len(batch):
            self.gradient = torch.ones(len(batch), math.prod(EVENT))
        self.zero_grad()
        loc, scale = self.encode(batch)
        mean = self.decoder.head(self.decoder.body(loc))
        torch.autograd.backward((mean, scale), (self.gradient, self.gradient[:, :LATENT]))


def _log_normal(value: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    constant = 0.5 * math.log(2 * math.pi)
    return (-0.5 * ((value - loc) / scale) ** 2 - torch.log(scale) - constant).sum(-1)


ARMS: dict[str, type[Arm]] = {
    "ours": Ours,
    "stock": Stock,
    "stock-fused": StockFused,
    "hand-same": HandSame,
    "hand-naive": HandNaive,
    "networks": Networks,
}
