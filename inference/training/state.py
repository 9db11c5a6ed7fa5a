"""Everything that a run needs to go on, in one object; saving and restoring it is resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn

from guides.guide import Guide
from inference.training.components import Components
from inference.training.config import FitConfig
from inference.training.surroundings import generator_state, restore_generators
from models.causal_pima import CausalPIMA
from models.decoders.base import Decoder

__all__ = ["TrainingState", "make_optimizer"]


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
    optimizer: torch.optim.Adam
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
        self.optimizer = torch.optim.Adam(groups, fused=True)

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


def make_optimizer(
    model: CausalPIMA, guide: Guide, config: FitConfig, stand_ins: nn.ModuleDict | None = None
) -> torch.optim.Adam:
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
            "parameters for gradients to move (models.trainable_mixture has some)"
        )
    groups = [
        {"params": networks, "lr": config.training.learning_rate},
        *([{"params": components, "lr": config.training.learning_rate, "part": _MIXTURE}] if components else []),
        {"params": [*model.graph.parameters(), *_prior_parameters(model)], "lr": config.graph.learning_rate},
    ]
    return torch.optim.Adam(groups, fused=True)


def _prior_parameters(model: CausalPIMA) -> list[nn.Parameter]:
    return [] if model.latent_prior is None else list(model.latent_prior.parameters())
