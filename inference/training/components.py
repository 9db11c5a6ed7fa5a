"""Components that are passed as objects in place of those that a configuration names (docs/components.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from guides.encoders import Encoder, MakeEncoder
from guides.fusion import Fusion, MakeFusion
from inference.training.priors import PriorChoice
from models.block_mixture import Mixture
from models.graph import NodeGraph
from models.latent_priors import LatentPrior

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["Components"]

GraphLike = NodeGraph | Callable[..., NodeGraph]
PriorLike = PriorChoice | LatentPrior | Mixture | Callable[..., Any]


@dataclass(frozen=True)
class Components:
    """Objects in place of configured components. Modules are copied; what makes modules is called for every start.

    Attributes:
        graph: p(N): a `NodeGraph`; a subclass, made of the outcomes; or a function of the configuration.
        prior: A `PriorChoice`; a `LatentPrior` or a subclass, made of the dimension of Z; a mixture p(Z | N) or a
            subclass of `GaussianMixture`, made of number of cells, dimension and covariance; or a function of the
            configuration and the names of the modalities that makes a mixture.
        fusion: A `Fusion`; or a class or function of the number of modalities, the dimension of Z, and whether the
            prior is one more expert.
        encoders: Per modality, an `Encoder`; or a class or function as the table `ENCODERS` has them.
    """

    graph: GraphLike | None = None
    prior: PriorLike | None = None
    fusion: Fusion | MakeFusion | None = None
    encoders: Mapping[str, Encoder | MakeEncoder] = field(default_factory=dict)

    def by_setting(self) -> dict[str, Any]:
        """What is passed, by the setting that it takes the place of."""
        parts = {"model.graph": self.graph, "model.prior": self.prior, "guide.fusion": self.fusion}
        encoders = {f"modality.{name}.encoder": encoder for name, encoder in self.encoders.items()}
        return {name: part for name, part in {**parts, **encoders}.items() if part is not None}

    def class_names(self) -> dict[str, str]:
        """The name of the class or function of each, as a run keeps it to ask for the object again."""
        return {name: getattr(part, "__name__", type(part).__name__) for name, part in self.by_setting().items()}

    def check(self, config: FitConfig) -> None:
        """Refuse objects beside settings that ask for something else.

        Raises:
            ValueError: The setting is not at its default, a fusion beside a mask, or an encoder of no modality.
        """
        given = self.by_setting()
        model, guide = config.model, config.guide
        for name, value, default in (
            ("model.graph", model.graph, "hodge"),
            ("model.prior", model.prior, "dag"),
            ("guide.fusion", guide.fusion, "poe"),
            ("guide.graph", guide.graph, "point"),
        ):
            if value != default and (name in given or (name == "guide.graph" and "model.graph" in given)):
                raise ValueError(f"{name}: expected {default} beside an object, got {value}; leave one of the two out")
        if self.fusion is not None and config.mask:
            raise ValueError(
                "guide.fusion: expected no object with a mask, got one; modalities have blocks of Z of their own, so "
                "that nothing is fused: leave one of the two out"
            )
        odd = sorted(set(self.encoders) - set(config.modality))
        if odd:
            known = ", ".join(config.modality)
            raise ValueError(f"components.encoders: expected modalities ({known}), got {odd[0]!r}; rename it")
