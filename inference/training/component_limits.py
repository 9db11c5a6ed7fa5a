"""Which components go together; the others are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from guides.fusion import FUSIONS, MIXTURES
from inference.training.priors import PRIORS
from models.decoders.physics import LAWS
from models.user_code import names_user_code

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["RULES", "Rule", "check_components"]


class Rule(NamedTuple):
    """Two components that do not go together.

    Attributes:
        name: The setting that is at fault.
        refuses: Whether a configuration breaks the rule.
        expected: What would be right, and in view of what.
        got: What the configuration has.
        advice: The reason, and what to do.
    """

    name: str
    refuses: Callable[[FitConfig], bool]
    expected: str
    got: Callable[[FitConfig], str]
    advice: str


def _has_no_cells(config: FitConfig) -> bool:
    return config.model.prior in PRIORS and PRIORS[config.model.prior].latent is not None


def _is_linear(config: FitConfig) -> bool:
    return config.model.prior == "linear_scm"


def _decoders_of_cells(config: FitConfig) -> str:
    """The modalities whose decoders depend on N, as far as the configuration says so."""
    decoders = {name: entry.decoder for name, entry in config.modality.items()}
    return ", ".join(
        name
        for name, decoder in decoders.items()
        if decoder.per_cell or (decoder.kind in LAWS and decoder.source != "latent")
    )


def _numbers_cells_freely(config: FitConfig) -> str:
    """Side information that does."""
    sources = {
        "environments.kind": config.environments.kind != "none",
        "read_outs": bool(config.read_outs),
        "independent_nodes": config.independent_nodes,
    }
    return ", ".join(name for name, is_used in sources.items() if is_used)


RULES: tuple[Rule, ...] = (
    Rule(
        "mask",
        lambda config: bool(config.mask) and config.model.prior == "nodewise",
        "none with model.prior nodewise",
        lambda config: f"one of {', '.join(config.mask)}",
        "blocks of Z would belong to nodes and to modalities at once; leave out one of the two",
    ),
    Rule(
        "model.prior",
        lambda config: config.model.prior == "nodewise" and bool(_numbers_cells_freely(config)),
        "another prior than nodewise beside side information that numbers cells freely",
        lambda config: f"nodewise beside {_numbers_cells_freely(config)}",
        "a block of Z is of one node, whereas any cluster may become any cell; use labels, or set it to dag",
    ),
    Rule(
        "guide.fusion",
        lambda config: config.guide.fusion != "poe" and bool(config.mask),
        "poe with a mask",
        lambda config: config.guide.fusion,
        "every modality has a block of Z of its own there, so that nothing is fused; leave this out",
    ),
    Rule(
        "distillation.epochs",
        lambda config: config.distillation.epochs > 0 and config.guide.fusion in MIXTURES,
        "0 with guide.fusion moe or mopoe",
        lambda config: f"{config.distillation.epochs} with {config.guide.fusion}",
        "a mixture trains every encoder to be right alone, so that there is nothing to teach; leave this out",
    ),
    Rule(
        "model.graph",
        lambda config: config.model.prior == "mixture" and config.model.graph != "hodge",
        "its default hodge with model.prior mixture",
        lambda config: config.model.graph,
        "its p(N) has a free weight for every cell and no graph; leave this out, or set model.prior to dag",
    ),
    Rule(
        "model.graph",
        lambda config: (
            config.model.graph == "posthoc:lingam"
            and (config.model.prior not in ("nodewise", "linear_scm") or config.model.latent_dim != 1)
        ),
        "another than posthoc:lingam without model.prior nodewise or linear_scm, or with model.latent_dim above 1",
        lambda config: f"it with {config.model.prior} and {config.model.latent_dim}",
        "LiNGAM needs one continuous number per node; set these, or take posthoc:pc",
    ),
    Rule(
        "guide.graph",
        lambda config: config.guide.graph != "point" and (config.model.prior == "mixture" or _has_no_cells(config)),
        "point with model.prior mixture or one without cells",
        lambda config: f"{config.guide.graph} with {config.model.prior}",
        "no graph takes part in its training, so that there is none to be inferred; set guide.graph to point",
    ),
    Rule(
        "mask",
        lambda config: bool(config.mask) and config.model.prior == "standard",
        "none with model.prior standard",
        lambda config: f"one of {', '.join(config.mask)}",
        "blocks of Z without N have nothing in common, so that modalities would be fitted one by one; leave it out",
    ),
    Rule(
        "model.prior",
        lambda config: _has_no_cells(config) and bool(_decoders_of_cells(config)),
        "a prior with cells beside decoders that depend on them",
        lambda config: f"{config.model.prior}, and such decoders of {_decoders_of_cells(config)}",
        "while it is trained there is no N; set per_cell to false, or source of a physics law to latent",
    ),
    Rule(
        "observe.use",
        lambda config: (
            config.model.prior == "standard" and bool(config.observe.variables) and config.observe.use == "training"
        ),
        "names with model.prior standard",
        lambda config: config.observe.use,
        "while it is trained there is no N that labels could tell; leave it at names",
    ),
    Rule(
        "training.kl_warmup",
        lambda config: config.training.kl_warmup > config.training.epochs,
        "at most training.epochs",
        lambda config: f"{config.training.kl_warmup} with {config.training.epochs} epochs",
        "epochs are compared with each other once the weight is full; train longer, or let it rise faster",
    ),
    Rule(
        "mixture.updates",
        lambda config: config.mixture.updates == "gradient" and _has_no_cells(config),
        "em with a prior without cells",
        lambda config: config.mixture.updates,
        "the mixture takes no part in its training, so that there is no gradient of it; leave this out",
    ),
    Rule(
        "observe.variables",
        lambda config: _is_linear(config) and set(config.observe.variables) != set(config.nodes),
        "a variable for every node with model.prior linear_scm",
        lambda config: ", ".join(config.observe.variables) or "none",
        "labels of some samples tell which block of Z is which node; say --observe NODE=VARIABLE,...",
    ),
    Rule(
        "observe.use",
        lambda config: _is_linear(config) and config.observe.use != "training",
        "training with model.prior linear_scm",
        lambda config: config.observe.use,
        "its blocks are nodes only by the labels that it is trained with; say --observe.use training",
    ),
    Rule(
        "mask",
        lambda config: _is_linear(config) and bool(config.mask),
        "none with model.prior linear_scm",
        lambda config: f"one of {', '.join(config.mask)}",
        "its blocks of Z belong to nodes, not to modalities, and all modalities see all of them; leave it out",
    ),
    Rule(
        "environments.kind",
        lambda config: _is_linear(config) and config.environments.kind != "none",
        "none with model.prior linear_scm",
        lambda config: config.environments.kind,
        "it takes all samples to be without intervention; leave it out",
    ),
)
"""A new component adds those of its own here."""


def check_components(config: FitConfig) -> None:
    """Refuse components that are none, and those that do not go together.

    Raises:
        ValueError: The message begins with the name of the setting and ends with what to do.
    """
    for name, value, table in (
        ("model.prior", config.model.prior, PRIORS),
        ("guide.fusion", config.guide.fusion, FUSIONS),
    ):
        if value not in table and not names_user_code(value):
            raise ValueError(f"{name}: expected one of {', '.join(table)}, or module:Class, got {value!r}")
    for rule in RULES:
        if rule.refuses(config):
            raise ValueError(f"{rule.name}: expected {rule.expected}, got {rule.got(config)}; {rule.advice}")
