"""Components and settings that are put together in pairs: their values, and the fit of a row of them.

The values come from the tables of the program, so that a new component is in the rows as soon as it is in its table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

import numpy as np
from tiny_fits import tiny_samples

from causalpima.guides.fusion import FUSIONS
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.components import GRAPHS, PRIORS
from causalpima.inference.training.config import (
    DecoderConfig,
    EncoderConfig,
    FitConfig,
    GuideConfig,
    MixtureConfig,
    ModalityConfig,
    PretrainingConfig,
)

__all__ = ["DEFAULTS", "LEVELS", "Level", "Row", "config_of", "samples_of"]

Level = tuple[str, str]
"""A factor and one of its values."""
Row = Mapping[str, str]

_NODES = {"A": 2, "B": 2}
_QUICK = {
    "nodes": _NODES,
    "pretraining.epochs": 1,
    "training.epochs": 2,
    "training.batch_size": 16,
    "training.learning_rate": 1e-2,
    "training.validation_fraction": 0.2,
    "graph.start_steps": 5,
    "graph.extra_steps": 2,
    "read_out.n_init": 1,
    "read_out.shape": "round",
}


def _choices(part: type, field: str) -> dict[str, dict[str, Any]]:
    """Every value of a setting that has a few of them, its default first."""
    setting = f"{part.__name__.removesuffix('Config').lower()}.{field}"
    default = getattr(part(), field)
    values = sorted(get_args(get_type_hints(part)[field]), key=lambda value: value != default)
    return {str(value): {setting: value} for value in values}


def _table(setting: str, table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {setting: name} for name in table}


def _values(setting: str, *values: Any) -> dict[str, dict[str, Any]]:
    return {str(value).lower(): {setting: value} for value in values}


LEVELS: dict[str, dict[str, dict[str, Any]]] = {
    "model.prior": _table("model.prior", PRIORS),
    "model.graph": _table("model.graph", GRAPHS)
    | {
        "fixed": {"model.graph": "fixed", "model.edges": ("A->B",)},
        "posthoc:lingam": {"model.graph": "posthoc:lingam", "model.latent_dim": 1},
    },
    "model.covariance": _values("model.covariance", "full", "diagonal"),
    "model.latent_dim": _values("model.latent_dim", 2, 1),
    "guide.fusion": _table("guide.fusion", FUSIONS),
    "guide.prior_expert": _values("guide.prior_expert", False, True),
    "guide.graph": _choices(GuideConfig, "graph"),
    "objective": _values("objective", "collapsed", "meanfield", "paper"),
    "kl_weight": _values("kl_weight", 1.0, 0.5),
    "training.kl_warmup": _values("training.kl_warmup", 0, 1),
    "pretraining.kind": _choices(PretrainingConfig, "kind"),
    "mixture.updates": _choices(MixtureConfig, "updates"),
    "mixture.updates_per_epoch": _values("mixture.updates_per_epoch", 1, 0, 3),
    "mixture.gaussians": _choices(MixtureConfig, "gaussians"),
    "noise": {"on": {}, "off": {"graph.noise_start": 0.0}},
    "annealing": {"on": {}, "off": {"graph.temperature_start": 0.05}},
    "graph.extra_steps": _values("graph.extra_steps", 2, 0),
    "decoders": {
        "network": {},
        "per_cell": {"decoder.per_cell": True},
        "physics": {"curve.decoder.kind": "linear"},
        "physics of Z": {"curve.decoder.kind": "linear", "curve.decoder.source": "latent"},
        "convolutional": {"picture.decoder.kind": "convolutional", "picture.decoder.sizes": (2, 2, 2)},
    },
    "decoder.variance": _values("decoder.variance", "analytic", "learned", "fixed"),
    "decoder.likelihood": _values("decoder.likelihood", "normal", "student_t"),
    "encoders": {
        "mlp": {},
        "convolutional and curve": {
            "picture.encoder.kind": "convolutional",
            "curve.encoder.kind": "curve",
            "encoder.sizes": (2,),
        },
    },
    "distillation.epochs": _values("distillation.epochs", 0, 1),
    "training.modality_dropout": _values("training.modality_dropout", 0.0, 0.4),
    "mask": {"none": {}, "two blocks": {"mask": {"picture": ("A", "B"), "curve": ("B",)}}},
    "observe": {
        "nothing": {},
        "names": {"observe.variables": {"A": "a", "B": "b"}},
        "training": {"observe.variables": {"A": "a", "B": "b"}, "observe.use": "training"},
    },
    "environments.kind": {
        "none": {},
        "do": {"environments.kind": "do", "environments.targets": {"one": "A"}},
        "soft": {"environments.kind": "soft", "environments.targets": {"one": "A"}},
    },
    "knowledge": {"none": {}, "forbid": {"knowledge.forbid": ("B->A",)}, "require": {"knowledge.require": ("A->B",)}},
    "independent_nodes": _values("independent_nodes", False, True),
    "read_out.final": _values("read_out.final", True, False),
    "covariates": {"no": {}, "yes": {}},
    "missing": {"no": {}, "yes": {}},
    "starts": {"one": {}, "two, batched": {}},
}
"""Per factor its values, the default first, and what each changes. `decoder.` and `encoder.` are of all modalities."""

DEFAULTS: Row = {factor: next(iter(levels)) for factor, levels in LEVELS.items()}


def samples_of(row: Row) -> MultimodalData:
    """Four clusters as outcomes of two nodes, seen in a picture of 6 x 6 and a curve of eight values."""
    intervenes = row["environments.kind"] != "none"  # each environment needs 20 samples of the training
    data = tiny_samples(71 if intervenes else 41, missing=row["missing"] == "yes")
    curve, cluster = data.modalities["curve"], data.factors["cluster"]
    rng = np.random.default_rng(1)
    pattern = np.kron(np.eye(4)[cluster].reshape(-1, 2, 2), np.ones((3, 3)))[..., None]
    picture = pattern + 0.1 * rng.standard_normal(pattern.shape)
    present = {"picture": data.present["spectrum"], "curve": data.present["curve"]}
    picture[~present["picture"]] = 0.0
    return dataclasses.replace(
        data,
        modalities={"picture": picture.astype(np.float32), "curve": curve},
        present=present,
        kinds={"picture": "image", "curve": "curve"},
        factors={"a": cluster // 2, "b": cluster % 2},
        factor_levels={"a": ("0", "1"), "b": ("0", "1")},
        environment=cluster[::-1] % 2 if intervenes else None,
        environment_names=("none", "one") if intervenes else (),
        covariates={"batch": np.arange(len(cluster)) % 2} if row["covariates"] == "yes" else {},
        covariate_levels={"batch": ("a", "b")} if row["covariates"] == "yes" else {},
    )


def config_of(row: Row) -> FitConfig:
    """The configuration of a row; factors that it lacks have their defaults.

    Raises:
        ValueError: It is illegal.
    """
    changes: dict[str, Any] = dict(_QUICK)
    for factor in LEVELS:
        changes |= LEVELS[factor][row.get(factor, DEFAULTS[factor])]
    entries = {name: _modality(name, changes) for name in ("picture", "curve")}
    parts: dict[str, dict[str, Any]] = {}
    top = {name: value for name, value in changes.items() if "." not in name}
    for name, value in changes.items():
        group, _, field = name.partition(".")
        if field and group not in ("picture", "curve", "decoder", "encoder"):
            parts.setdefault(group, {})[field] = value
    hints = _hints()
    return FitConfig(**top, **{group: hints[group](**values) for group, values in parts.items()}, modality=entries)


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(FitConfig)


def _modality(name: str, changes: Mapping[str, Any]) -> ModalityConfig:
    def of(part: str) -> dict[str, Any]:
        found: dict[str, Any] = {"sizes": (8,)}
        for prefix in (f"{part}.", f"{name}.{part}."):
            found |= {key.removeprefix(prefix): value for key, value in changes.items() if key.startswith(prefix)}
        return found

    return ModalityConfig(EncoderConfig(**of("encoder")), DecoderConfig(**of("decoder")))
