"""What the settings of a fit may be; everything else is refused by name."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from causalpima.guides.encoders import ENCODERS
from causalpima.guides.fusion import FUSIONS, MIXTURES
from causalpima.inference.clusters.counting import count_labellings
from causalpima.inference.clusters.identify import Environment, SideInformation
from causalpima.inference.graphs.dags import MOST_NODES, graph_knowledge
from causalpima.inference.training.components import PRIORS, check_graph
from causalpima.models.decoders.networks import NETWORKS, is_network
from causalpima.models.decoders.physics.laws import LAWS
from causalpima.models.user_code import names_user_code

if TYPE_CHECKING:
    from causalpima.inference.training.config import DecoderConfig, FitConfig, ModalityConfig

__all__ = [
    "RULES",
    "Rule",
    "check_components",
    "check_mask",
    "check_modality",
    "check_settings",
    "check_side_information",
    "is_physics",
    "side_information",
]


# Which components go together; the others are refused with the reason.


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


# What a mask of modalities and nodes may be, and what does not go with one.


_EXAMPLE = "for example image=shape,hue"


def check_mask(config: FitConfig) -> None:
    """Refuse a mask that means nothing, and settings that mean nothing with it.

    Raises:
        ValueError: A modality that sees no node, one node twice, or a node that does not exist; a node that no modality
            sees; settings of the fusion of encoders, of which there is none.
    """
    if not isinstance(config.mask, Mapping):
        raise ValueError(f"mask: expected nodes by modality, {_EXAMPLE}, got {config.mask!r}")
    if not config.mask:
        return
    for name, nodes in config.mask.items():
        _check_mask_nodes(name, nodes, list(config.nodes))
    unseen = [node for node in config.nodes if not any(node in nodes for nodes in config.mask.values())]
    if unseen:
        raise ValueError(
            f"mask: expected every node in the sight of a modality, got none that sees {unseen[0]}; nothing can be "
            "learned of it, leave it out of the nodes"
        )
    for setting, value, off, reason in _fusion(config):
        if value:
            raise ValueError(f"{setting}: expected {off} with a mask, got {str(value).lower()}; {reason}")


def _check_mask_nodes(name: str, nodes: Any, known: list[str]) -> None:
    if not isinstance(nodes, tuple) or not all(isinstance(node, str) for node in nodes):
        raise ValueError(f"mask: expected names of nodes for {name}, {_EXAMPLE}, got {nodes!r}")
    if not nodes:
        raise ValueError(f"mask: expected a node that {name} sees, got none; name one, or leave out the modality")
    for node in nodes:
        if node not in known:
            raise ValueError(f"mask: expected nodes among {', '.join(known)} for {name}, got {node}")
        if nodes.count(node) > 1:
            raise ValueError(f"mask: expected every node once for {name}, got {node} {nodes.count(node)} times")


def _fusion(config: FitConfig) -> Iterator[tuple[str, Any, str, str]]:
    """Settings that are about one block of Z that all modalities share."""
    alone = "each modality has a block of Z of its own, which its own encoder alone gives"
    yield "guide.prior_expert", config.guide.prior_expert, "false", f"{alone}: there is no product for it to enter"
    dropout = f"{alone}, so that no encoder has to do without the others"
    yield "training.modality_dropout", config.training.modality_dropout, "0", dropout
    taught = f"{alone}, so that there is nothing to teach one by the others"
    yield "distillation.epochs", config.distillation.epochs, "0", taught


# Which settings of one modality go together.


def is_physics(decoder: DecoderConfig) -> bool:
    """Whether the decoder is a physics law."""
    return not is_network(decoder.kind)


def check_modality(name: str, config: ModalityConfig) -> None:
    """Refuse settings that contradict each other.

    Args:
        name: Beginning of the names in messages, for example `modality.image`.
        config: Settings of the modality.

    Raises:
        ValueError: An unknown kind of encoder or decoder, or settings that do not apply to it.
    """
    decoder, encoder = config.decoder, config.encoder.kind
    if encoder not in ENCODERS and not names_user_code(encoder):
        known = ", ".join(ENCODERS)
        raise ValueError(f"{name}.encoder.kind: expected one of {known}, or module:function, got {encoder!r}")
    if is_physics(decoder):
        _check_law(f"{name}.decoder", decoder)
    elif decoder.options or decoder.source != "cell":
        raise ValueError(
            f"{name}.decoder: expected options and source for a physics law alone, got them for {decoder.kind}; "
            "leave them out, or name a law as kind"
        )
    if decoder.likelihood not in ("normal", "student_t") and config.transform != "identity":
        raise ValueError(
            f"{name}.transform: expected identity for likelihood {decoder.likelihood}, which takes values as they are, "
            f"got {config.transform}"
        )


def _check_law(name: str, decoder: DecoderConfig) -> None:
    if decoder.kind not in LAWS and ":" not in decoder.kind:
        known = ", ".join([*NETWORKS, *LAWS])
        raise ValueError(f"{name}.kind: expected one of {known}, or module:Class, got {decoder.kind!r}")
    if decoder.likelihood != "normal":
        raise ValueError(
            f"{name}.likelihood: expected normal for a physics law, got {decoder.likelihood}; use it with a network"
        )
    if decoder.per_cell:
        raise ValueError(f"{name}.per_cell: expected false for a physics law, got true; source says what it depends on")


# Side information that names clusters: what of it goes together, and what can be counted of it.


def check_side_information(config: FitConfig) -> None:
    """Refuse side information that contradicts itself or would go unused.

    Raises:
        ValueError: Soft interventions upon nodes without names, targets that are no nodes or of no environments,
            read-outs or independence beside something stronger or beside each other, or knowledge of the graph that is
            none.
    """
    _check_environments(config)
    _check_knowledge(config)
    given = _given(config)
    if given[:3] == ["mask", "observe", "environments"]:
        raise ValueError(
            "environments.kind: expected labels or a mask beside environments, got both; leave one of the three out"
        )
    weak = [name for name in given if name in ("read_outs", "independent_nodes")]
    if weak and len(given) > 1:
        raise ValueError(
            f"{weak[-1]}: expected no other side information that names clusters, got {given[0]} too, which assumes "
            f"less; leave {weak[-1]} out"
        )


def side_information(
    config: FitConfig, environments: Sequence[str] = (), named: Collection[str] = ()
) -> SideInformation:
    """What a configuration knows of its nodes, for the report on what remains undetermined.

    An intervention that sets its node at random, whatever its causes, marks no cells by itself: it counts as one under
    which all cells may occur, which directs edges and leaves the number of labellings an upper bound.

    Args:
        config: The configuration.
        environments: Names of the environments of the data with an intervention.
        named: Nodes that names were given to.
    """
    targets = config.environments.targets
    return SideInformation(
        config.nodes,
        config.mask,
        tuple(name for name in config.nodes if name in {*config.observe.variables, *named}),
        config.knowledge.tiers,
        environments=tuple(Environment("soft", targets.get(name)) for name in environments)
        if config.environments.kind != "none"
        else (),
        independent=config.independent_nodes,
    )


def _given(config: FitConfig) -> list[str]:
    """The strongest first."""
    there = {
        "mask": bool(config.mask),
        "observe": bool(config.observe.variables),
        "environments": config.environments.kind == "do",
        "read_outs": bool(config.read_outs),
        "independent_nodes": config.independent_nodes,
    }
    return [name for name, is_there in there.items() if is_there]


def _check_knowledge(config: FitConfig) -> None:
    graph_knowledge(config.knowledge, tuple(config.nodes))
    if config.independent_nodes and config.knowledge.require:
        raise ValueError(
            f"knowledge.require: expected no edges between nodes that are declared independent, got "
            f"{', '.join(config.knowledge.require)}; leave independent_nodes or them out"
        )


def _check_environments(config: FitConfig) -> None:
    kind, targets = config.environments.kind, config.environments.targets
    if kind == "soft":
        _check_soft(config)
    if kind == "none" and targets:
        raise ValueError(
            "environments.targets: expected none unless environments name the clusters, got "
            f"{', '.join(targets)}; add --environments.kind do if the interventions set their node whatever its causes"
        )
    odd = next((node for node in targets.values() if node not in config.nodes), None)
    if odd is not None:
        raise ValueError(
            f"environments.targets: expected nodes of --nodes ({', '.join(config.nodes)}), got {odd!r}; write "
            "ENVIRONMENT=NODE"
        )


def _check_soft(config: FitConfig) -> None:
    """Soft interventions name nothing; over nodes that something else names, they direct edges."""
    labelled = [position for position, name in enumerate(config.nodes) if name in config.observe.variables]
    if count_labellings(config.outcomes, list(config.visible.values()) or None, labelled=labelled) != 1:
        raise ValueError(
            "environments.kind: expected do, or soft beside a mask or labels that name every node, got soft; where a "
            "node goes on to depend on its causes, renaming its outcomes for each of their outcomes changes no "
            "likelihood, so that soft interventions name nothing: name the nodes by --observe or --mask, or leave this "
            "out, and the environments take part as further samples"
        )
    if len(config.nodes) > MOST_NODES:
        raise ValueError(
            f"environments.kind: expected at most {MOST_NODES} nodes with soft interventions, got {len(config.nodes)}; "
            "leave this out, and the environments take part as further samples"
        )


_Rule = tuple[Callable[[float], bool], str]

_MOST = 2**31
# The largest number of single precision, in which models compute.
_LARGEST = 3e38
_POSITIVE: _Rule = (lambda value: 0 < value < _LARGEST, "> 0 and below 3e38")
_NOT_NEGATIVE: _Rule = (lambda value: 0 <= value < _LARGEST, ">= 0 and below 3e38")
_SIZE: _Rule = (lambda value: 0 < value < _MOST, "> 0 and below 2**31")
_COUNT: _Rule = (lambda value: 0 <= value < _MOST, ">= 0 and below 2**31")
_SHARE: _Rule = (lambda value: 0 <= value < 1, "in [0, 1)")
_PART: _Rule = (lambda value: 0 < value <= 1, "in (0, 1]")
_SEED: _Rule = (lambda value: 0 <= value < 2**32, "in [0, 2**32)")
_RULES: Mapping[str, _Rule] = {
    "seed": _SEED,
    "restart": _COUNT,
    "latent_dim": _SIZE,
    "epochs": _COUNT,
    "kl_weight": _POSITIVE,
    "kl_warmup": _COUNT,
    "batch_size": _SIZE,
    "learning_rate": _POSITIVE,
    "validation_fraction": _SHARE,
    "test_fraction": _SHARE,
    "modality_dropout": _SHARE,
    "fraction": _PART,
    "transform_knee": _NOT_NEGATIVE,
    "weight": _POSITIVE,
    "patience": _COUNT,
    "start_steps": _COUNT,
    "extra_steps": _COUNT,
    "temperature_start": _POSITIVE,
    "temperature_end": _POSITIVE,
    "noise_start": _NOT_NEGATIVE,
    "noise_end": _NOT_NEGATIVE,
    "edge_rate": _NOT_NEGATIVE,
    "edge_penalty": _NOT_NEGATIVE,
    "table_penalty": _NOT_NEGATIVE,
    "acyclicity_tolerance": _POSITIVE,
    "updates_per_epoch": _COUNT,
    "pseudo_count": _POSITIVE,
    "variance_floor": _POSITIVE,
    "variance_initial": _POSITIVE,
    "n_init": _SIZE,
}


def check_settings(config: FitConfig) -> None:
    """Refuse settings that no fit can have, whatever the data.

    Raises:
        ValueError: A value of another type, no choice, or out of range; the message begins with its name.
    """
    for name, kind, value in _leaves(config, ""):
        _check_kind(name, kind, value)
    for name, entry in config.modality.items():
        check_modality(f"modality.{name}", entry)
    _check_fractions(config.training.validation_fraction, config.training.test_fraction)
    _check_nodes(config.nodes)
    check_side_information(config)
    _check_read_out(config.read_out.sizes, math.prod(config.outcomes))
    check_mask(config)
    check_graph(config)
    check_components(config)


def _leaves(part: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and value of every setting but the nodes and the mask."""
    part_type: Any = type(part)
    for field, kind in _fields(part_type):
        name, value = prefix + field, getattr(part, field)
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, f"{name}.")
        elif field == "modality":
            for modality, entry in value.items():
                yield from _leaves(entry, f"modality.{modality}.")
        elif field not in ("nodes", "mask"):
            yield name, kind, value


@functools.cache
def _fields(part: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of the fields of a part of a configuration."""
    hints = get_type_hints(part)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(part))


def _check_kind(name: str, kind: Any, value: Any) -> None:
    form = _form(kind)
    if form is not None:
        holds, expected = form
        if not holds(value):
            _require(False, name, expected, repr(value))
    elif kind in (int, float):
        _check_number(name, kind, value)
    else:
        _check_widths(name, value)


@functools.cache
def _form(kind: Any) -> tuple[Callable[[Any], bool], str] | None:
    """What values of a type look like; None: they have a check of their own."""
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return (lambda value: value in choices), f"one of {', '.join(choices)}"
    if get_origin(kind) is dict:
        return (lambda value: isinstance(value, Mapping)), "arguments by name"
    return _FORMS.get(kind)


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(word, str) and bool(word) for word in value)


def _are_groups(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_are_names, value))


def _are_pairs(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair)


_FORMS: Mapping[Any, tuple[Callable[[Any], bool], str]] = {
    bool: (lambda value: isinstance(value, bool), "true or false"),
    str: (lambda value: isinstance(value, str) and bool(value), "a name"),
    Mapping[str, str]: (_are_pairs, "names by name, for example {'type': 'alloy'}"),
    tuple[str, ...]: (_are_names, "names, for example ('type', 'response')"),
    tuple[tuple[str, ...], ...]: (_are_groups, "groups of names, for example (('type',), ('response',))"),
}


def _check_number(name: str, kind: type, value: Any) -> None:
    holds, expected = _RULES[name.rpartition(".")[2]]
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    _require(is_number and holds(float(value)), name, f"a number {expected}", value)
    _require(kind is float or isinstance(value, numbers.Integral), name, "a whole number", value)


def _check_widths(name: str, sizes: Any) -> None:
    are_whole = isinstance(sizes, tuple | list) and all(isinstance(size, numbers.Integral) for size in sizes)
    _require(are_whole, name, "whole numbers, for example (64, 32)", repr(sizes))
    _require(all(size > 0 for size in sizes), name, "widths >= 1", list(sizes))
    _require(all(size < _MOST for size in sizes), name, "widths below 2**31", list(sizes))


def _check_nodes(nodes: Mapping[str, Any]) -> None:
    if not nodes:
        raise ValueError("nodes: expected at least one node, got none; give the outcomes per node, for example 2,2")
    for name, outcomes in nodes.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"nodes: expected names that are words, got {name!r}; rename this node")
        if not isinstance(outcomes, int) or isinstance(outcomes, bool) or outcomes < 2:
            raise ValueError(f"nodes: expected at least 2 outcomes for {name}, an integer, got {outcomes!r}")


def _check_read_out(sizes: tuple[int, ...], n_cells: int) -> None:
    if any(size < n_cells for size in sizes):
        raise ValueError(
            f"read_out.sizes: expected at least {n_cells} Gaussians, one per cell, got {list(sizes)}; "
            "leave it empty to have them chosen"
        )


def _check_fractions(validation: float, test: float) -> None:
    if validation + test >= 1:
        raise ValueError(
            f"training: expected validation_fraction and test_fraction of less than 1 together, got {validation} and "
            f"{test}; leave some samples for training"
        )


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    if not holds:
        raise ValueError(f"{name}: expected {expected}, got {value}")
