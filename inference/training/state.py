"""Everything that a run needs to go on, in one object; saving and restoring it is resume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import unwrap
from typing import Any, TypedDict, cast

import pyro
import torch
from torch import Tensor, nn

from causalpima.guides.guide import Guide
from causalpima.inference.training.components import Components
from causalpima.inference.training.config import FitConfig
from causalpima.models.decoders.base import Decoder
from causalpima.models.gaussian import own_generators
from causalpima.models.program import CausalPIMA

__all__ = [
    "Adam",
    "DivergedError",
    "GeneratorState",
    "TrainingState",
    "check_finite",
    "check_weights",
    "choose_device",
    "generator_state",
    "geometric",
    "linear",
    "make_optimizer",
    "no_singular_matrices",
    "restore_generators",
    "seed_generators",
    "surroundings",
    "warmup",
]


# The process around a run: generators, precision and Pyro's settings are its own while it works, then the caller's.


class GeneratorState(TypedDict):
    """States of torch's generators: `cpu`, and `device` where that is another."""

    cpu: Tensor
    device: Tensor | None


def choose_device(name: str) -> torch.device:
    """A device that is there and computes in double precision.

    Raises:
        ValueError: It is not, or does not.
    """
    try:
        probe = torch.zeros(1, device=torch.device(name), dtype=torch.float64)
        probe.item()  # fails on a device that holds no numbers
    except (RuntimeError, AssertionError, ImportError, TypeError) as error:
        raise ValueError(
            f"device: expected one that this machine has and that computes in double precision, for example cpu, "
            f"got {name!r}"
        ) from error
    return probe.device


@contextmanager
def surroundings(device: torch.device) -> Iterator[None]:
    """What a run needs of the process, put back afterwards whatever happens.

    Inside: torch's generators may be changed, new tensors are float32, gradients are on, Pyro keeps parameters in
    their modules and validates nothing. Threads take turns: all of this belongs to the process.
    """
    with ExitStack() as stack:
        stack.enter_context(own_generators([device] if device.type == "cuda" else []))
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.enter_context(torch.inference_mode(False))  # gradients are on in it, too
        stack.enter_context(pyro.settings.context(module_local_params=True))
        stack.enter_context(pyro.validation_enabled(False))
        torch.set_default_dtype(torch.float32)
        yield


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the generators that a run on this device draws from, and no others."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def generator_state(device: torch.device) -> GeneratorState:
    """States of the generators that a run on this device draws from."""
    return {
        "cpu": torch.get_rng_state(),
        "device": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }


def restore_generators(state: GeneratorState, device: torch.device) -> None:
    """Put states back; that of a device of another kind is left out."""
    torch.set_rng_state(state["cpu"])
    if state["device"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state["device"], device)


class Adam(torch.optim.Adam):
    """`torch.optim.Adam`, the same functions without torch's decorators.

    For the sake of `torch.compile` around the optimiser, which nobody does here, the decorators import `torch._dynamo`
    at the first call: 2.5 s of every process that fits.
    """

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))
    zero_grad = unwrap(torch.optim.Adam.zero_grad)


@dataclass
class TrainingState:
    """The state of a run at the end of an epoch.

    Attributes:
        model: The generative model, with its mixture.
        guide: The guide.
        optimizer: Adam over networks and graph.
        stand_ins: Networks of Z that stand in, while there are no clusters, for decoders that do not depend on Z, which
            would teach their encoders nothing.
        epoch: Finished epochs, pretraining and distillation included.
        distilled_epochs: Finished epochs of distillation.
        clustered: Whether the clusters were read out, so that joint training can go on.
        history: One record per epoch.
        best_objective: Best held-out (else training) objective of joint training.
        best_epoch: Its epoch.
        best_weights: Weights of that epoch, by name; empty before the first epoch of joint training.
        diverged: What was not finite, or None; a checkpoint is always of a state in which all was.
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`); None: from nowhere.
        components: Objects in place of configured components: what a graph is made of anew.
    """

    model: CausalPIMA
    guide: Guide
    optimizer: Adam
    stand_ins: nn.ModuleDict = field(default_factory=nn.ModuleDict)
    epoch: int = 0
    distilled_epochs: int = 0
    clustered: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
    best_objective: float = -float("inf")
    best_epoch: int = 0
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    diverged: str | None = None
    labelling: dict[str, Any] | None = None
    components: Components = field(default_factory=Components)

    @property
    def device(self) -> torch.device:
        """Where model and guide are."""
        return next(self.model.graph.buffers()).device

    @property
    def decoders(self) -> dict[str, Decoder]:
        """The decoders of the model, by modality."""
        return {name: cast(Decoder, decoder) for name, decoder in self.model.decoders.items()}

    @property
    def modules(self) -> nn.ModuleDict:
        """Everything with weights as one module, for weights by name."""
        return nn.ModuleDict({"model": self.model, "guide": self.guide, "stand_ins": self.stand_ins})

    @cached_property
    def pretraining_model(self) -> CausalPIMA:
        """The model with the stand-ins in their places; the model itself where there are none."""
        if not self.stand_ins:
            return self.model
        return self.model.with_decoders({**self.decoders, **cast(dict[str, Decoder], dict(self.stand_ins))})

    def weights(self) -> dict[str, Tensor]:
        """All parameters and buffers, and those of the best epoch under `best.`."""
        best = {f"best.{name}": value for name, value in self.best_weights.items()}
        return {**self.modules.state_dict(), **best}

    def scalars(self) -> dict[str, Any]:
        """All the rest: optimiser, random generators, counters, history."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "generators": generator_state(self.device),
            **{name: getattr(self, name) for name in _SCALARS},
        }

    def restore(self, weights: Mapping[str, Tensor], scalars: Mapping[str, Any]) -> None:
        """Put back what `weights` and `scalars` returned, random generators included."""
        current = {name: value for name, value in weights.items() if not name.startswith("best.")}
        if any(name.startswith("guide.unimodal.") for name in current):
            self.add_unimodal_encoders(learning_rate=1.0)  # the optimiser's own state has the true one
        self.modules.load_state_dict(current)
        self.best_weights = {
            name.removeprefix("best."): value.to(self.device, copy=True)
            for name, value in weights.items()
            if name.startswith("best.")
        }
        self.follow_mixture()
        self.optimizer.load_state_dict(scalars["optimizer"])
        for name in _SCALARS:
            setattr(self, name, scalars[name])
        restore_generators(scalars["generators"], self.device)

    def follow_mixture(self) -> None:
        """Let the optimiser move the parameters that the mixture has now, without momentum; where it moves any."""
        for group in self.optimizer.param_groups:
            if group.get("part") == _MIXTURE:
                for parameter in group["params"]:
                    self.optimizer.state.pop(parameter, None)
                group["params"] = list(self.model.mixture.parameters())

    def add_unimodal_encoders(self, learning_rate: float) -> None:
        """Give the guide a copy of each encoder, and let the optimiser move these copies.

        It moves the graph, too, which has no gradients while encoders are taught, but is fitted to the clusters that
        are read out after it.
        """
        self.guide.copy_encoders()
        graph = self.optimizer.param_groups[-1]
        groups = [
            {"params": list(self.guide.unimodal.parameters()), "lr": learning_rate},
            {"params": list(self.model.graph.parameters()), "lr": graph["lr"]},
        ]
        self.optimizer = Adam(groups, fused=True)

    def keep_best(self, objective: float) -> None:
        """Remember the weights if this is the best objective of joint training."""
        if objective > self.best_objective:
            self.best_objective, self.best_epoch = objective, self.epoch
            self.best_weights = {name: value.detach().clone() for name, value in self.modules.state_dict().items()}

    def return_to_best(self) -> None:
        """Go back to the weights of the best epoch, if there was one."""
        if self.best_weights:
            self.modules.load_state_dict(self.best_weights)


_MIXTURE = "mixture"
_SCALARS = ("epoch", "distilled_epochs", "clustered", "history", "best_objective", "best_epoch", "labelling")


def make_optimizer(model: CausalPIMA, guide: Guide, config: FitConfig, stand_ins: nn.ModuleDict | None = None) -> Adam:
    """Fused Adam with two groups, each with its learning rate: encoders and decoders; graph and prior without cells.

    Between them a third one, with the rate of the networks, where gradients move the components of the mixture.

    Raises:
        ValueError: Gradients are to move the components of a mixture that has no parameters.
    """
    networks = [*guide.parameters(), *model.decoders.parameters(), *(stand_ins or nn.ModuleDict()).parameters()]
    components = list(model.mixture.parameters()) if config.mixture.updates == "gradient" else []
    if config.mixture.updates == "gradient" and not components:
        raise ValueError(
            f"mixture.updates: expected em with model.prior {config.model.prior}, got gradient; its mixture has no "
            "parameters for gradients to move (models.mixture has some)"
        )
    groups = [
        {"params": networks, "lr": config.training.learning_rate},
        *([{"params": components, "lr": config.training.learning_rate, "part": _MIXTURE}] if components else []),
        {"params": [*model.graph.parameters(), *_prior_parameters(model)], "lr": config.graph.learning_rate},
    ]
    return Adam(groups, fused=True)


def _prior_parameters(model: CausalPIMA) -> list[nn.Parameter]:
    return [] if model.latent_prior is None else list(model.latent_prior.parameters())


# A fit whose numbers stopped being finite.


class DivergedError(ArithmeticError):
    """Something that has to be finite is not; the message names it."""


def check_finite(name: str, value: Tensor | float) -> None:
    """Refuse NaN and infinities.

    Raises:
        DivergedError: `value` has some.
    """
    tensor = torch.as_tensor(value)
    if not bool(torch.isfinite(tensor).all()):
        found = f"{float(tensor)}" if tensor.numel() == 1 else "not finite"
        raise DivergedError(f"the {name} is {found}")


def check_weights(modules: nn.Module) -> None:
    """Refuse parameters that are not finite.

    Raises:
        DivergedError: The first such parameter.
    """
    for name, value in modules.named_parameters():
        check_finite(f"weight {name}", value.detach().sum())


@contextmanager
def no_singular_matrices() -> Iterator[None]:
    """A matrix that cannot be decomposed is a divergence, not a bug: its entries are beyond the precision of floats."""
    try:
        yield
    except torch.linalg.LinAlgError as error:
        raise DivergedError("the covariance of a cluster is not positive definite") from error


# Schedules over the epochs of joint training or pretraining.


def _progress(epoch: int, n_epochs: int) -> float:
    return 1.0 if n_epochs <= 1 else min(epoch / (n_epochs - 1), 1.0)


def geometric(start: float, end: float, epoch: int, n_epochs: int) -> float:
    """From `start` at epoch 0 to `end` at the last epoch, by a constant factor."""
    return float(start * (end / start) ** _progress(epoch, n_epochs))


def linear(start: float, end: float, epoch: int, n_epochs: int) -> float:
    """From `start` at epoch 0 to `end` at the last epoch, by a constant difference."""
    return start + (end - start) * _progress(epoch, n_epochs)


def warmup(epoch: int, n_epochs: int) -> float:
    """Weight that rises linearly to 1 over `n_epochs` epochs (1 from the start if there are none)."""
    return 1.0 if n_epochs == 0 else min((epoch + 1) / n_epochs, 1.0)
