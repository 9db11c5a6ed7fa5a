"""Which configurations the batched path can compute, and why others not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain

from inference.training.components import Components
from inference.training.config import FitConfig, ModalityConfig
from inference.training.graph_choice import RELAXED
from models.decoders.bodies import NETWORKS
from models.modality import Modality
from models.user_code import names_user_code

__all__ = ["batched_support"]


def batched_support(
    config: FitConfig,
    modalities: Mapping[str, Modality],
    supplied: Collection[str] = (),
    components: Components | None = None,
) -> str | None:
    """Why starts of this configuration can't be trained as one computation; None if they can.

    What can't is what `torch.vmap` can't evaluate, or not faster than one start after the other: other encoders and
    decoders than perceptrons, other likelihoods than the normal one, and latent blocks under a mask.

    Args:
        config: The configuration, with an entry for every modality.
        modalities: What is known of every modality.
        supplied: Modalities whose decoder was handed over.
        components: Objects in place of configured components.
    """
    own = _of_the_user(config, components or Components())
    general = (reason(config) for is_so, reason in _NOT_BATCHED if is_so(config))
    of_modalities = (
        reason for name in modalities for reason in _reasons(name, config.modality[name], name in supplied)
    )
    return next(chain([own] if own is not None else [], general, of_modalities), None)


_NOT_BATCHED: tuple[tuple[Callable[[FitConfig], bool], Callable[[FitConfig], str]], ...] = (
    (
        lambda config: config.model.graph in RELAXED,
        lambda config: (
            f"the graph {config.model.graph} has a schedule of its own for every start, which is not batched"
        ),
    ),
    (
        lambda config: config.model.graph != "hodge",
        lambda config: f"the graph {config.model.graph} has tables in closed form, which are not batched",
    ),
    (
        lambda config: config.model.prior in ("mixture", "standard"),
        lambda config: f"the prior {config.model.prior} has no graph to be trained, and is not batched",
    ),
    (
        lambda config: (config.kl_weight, config.training.kl_warmup) != (1, 0),
        lambda _: "a bound with kl_weight or kl_warmup is not batched",
    ),
    (
        lambda config: config.guide.graph != "point",
        lambda _: "a guide over graphs draws from Pyro programs, which are not batched",
    ),
    (
        lambda config: config.model.prior == "nodewise",
        lambda _: "a block of Z per node is not batched",
    ),
    (
        lambda config: config.mixture.updates == "gradient",
        lambda _: "components of the mixture that gradients move are not batched",
    ),
    (
        lambda config: config.guide.fusion in ("moe", "mopoe"),
        lambda config: f"guide.fusion {config.guide.fusion} chooses a Gaussian for every draw, which is not batched",
    ),
    (
        lambda config: bool(config.mask),
        lambda _: "a mask gives every modality a latent block of its own, which is not batched",
    ),
    (
        lambda config: bool(config.observe.variables) and config.observe.use == "training",
        lambda _: "labels tell N during training, which is not batched",
    ),
)
"""Whether a configuration is of a kind, and why that kind is not batched."""


def _of_the_user(config: FitConfig, components: Components) -> str | None:
    """What of the model or the guide is a user's own."""
    objects = components.by_setting()
    if objects:
        return f"{next(iter(objects))} is an object of your own, which is not batched"
    model = config.model
    named = {"model.graph": model.graph, "model.prior": model.prior, "guide.fusion": config.guide.fusion}
    own = next((name for name, value in named.items() if names_user_code(value)), None)
    return None if own is None else f"{own} is {named[own]}, of your own, which is not batched"


def _reasons(name: str, entry: ModalityConfig, is_supplied: bool) -> Iterator[str]:
    if is_supplied:
        yield f"modality {name} has a decoder of your own"
    if entry.encoder.kind != "mlp":
        yield f"modality {name} has the encoder {entry.encoder.kind}, and only mlp is batched"
    if names_user_code(entry.decoder.kind):
        yield f"modality {name} has the decoder {entry.decoder.kind} of your own, and only mlp is batched"
    elif entry.decoder.kind not in NETWORKS:
        yield f"modality {name} has the physics law {entry.decoder.kind}, and only the decoder mlp is batched"
    elif entry.decoder.kind != "mlp":
        yield f"modality {name} has the decoder {entry.decoder.kind}, and only mlp is batched"
    if entry.decoder.likelihood != "normal":
        yield f"modality {name} has the likelihood {entry.decoder.likelihood}, and only normal is batched"
