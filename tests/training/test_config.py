"""The configuration: what it refuses, what its hash covers, what the paper's settings are."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, get_type_hints

import pytest

from causalpima.inference.training.config import (
    DecoderConfig,
    EncoderConfig,
    FitConfig,
    ModalityConfig,
    PretrainingConfig,
    TrainingConfig,
    paper_settings,
)

NODES = {"type": 2, "response": 3}


def config(**parts: Any) -> FitConfig:
    modality = {"image": ModalityConfig(), "load": ModalityConfig(EncoderConfig("curve", (8, 16)))}
    settings: dict[str, Any] = {"nodes": NODES, "modality": modality} | parts
    return FitConfig(**settings)


def with_value(base: Any, path: str, value: Any) -> Any:
    """A copy with one value changed, deep inside."""
    first, _, rest = path.partition(".")
    if isinstance(base, dict):
        return base | {first: with_value(base[first], rest, value)}
    inner = with_value(getattr(base, first), rest, value) if rest else value
    return dataclasses.replace(base, **{first: inner})


def leaves(part: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of everything that can be set."""
    for field in dataclasses.fields(part):
        value, path = getattr(part, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            yield from leaves(value, f"{path}.")
        elif field.name == "modality":
            for name, entry in value.items():
                yield from leaves(entry, f"{path}.{name}.")
        else:
            yield path, value


OTHER_WORDS = {
    "objective": "meanfield",
    "covariance": "diagonal",
    "guide.graph": "bayesian",
    "model.graph": "empty",
    "model.prior": "mixture",
    "mixture.updates": "gradient",
    "guide.fusion": "fusions:Mine",
    "prior": "mylab:Prior",
    "fusion": "mylab:Fusion",
    "pretraining.kind": "none",
    "environments.kind": "do",
    "kind": "convolutional",
    "variance": "fixed",
    "variance_per": "modality",
    "gaussians": "one",
    "use": "training",
    "likelihood_scaling": "dimension",
    "likelihood": "student_t",
    "source": "latent",
    "shape": "round",
    "transform": "asinh",
}

OTHER_NAMES = {
    "model.edges": ("type->response",),
    "observe.variables": {"type": "alloy"},
    "environments.targets": {"heated": "type"},
    "read_outs": {"image": "moments"},
    "mask": {"image": ("type", "response"), "load": ("type",)},
    "knowledge.forbid": ("type->response",),
    "knowledge.require": ("type->response",),
    "knowledge.tiers": (("type",), ("response",)),
    "knowledge.designed": ("type",),
}


def other(path: str, value: Any) -> Any:
    """Another valid value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return OTHER_WORDS.get(path) or OTHER_WORDS[path.rpartition(".")[2]]
    if isinstance(value, dict):
        return OTHER_NAMES.get(path) or value | {"response": 4}
    if isinstance(value, tuple):
        return OTHER_NAMES.get(path, (*value, 99))
    return value / 3 + 0.1 if isinstance(value, float) else value + 1


LEAVES = dict(leaves(config()))


def test_every_setting_is_looked_at() -> None:
    assert len(LEAVES) > 40
    assert "modality.load.decoder.variance_floor" in LEAVES
    assert set(get_type_hints(FitConfig)) == {path.partition(".")[0] for path in LEAVES}


@pytest.mark.parametrize("path", LEAVES)
def test_fingerprint_changes_with_every_setting(path: str) -> None:
    base = config()
    if path.endswith(("source", "options")):  # settings of physics laws alone
        base = with_value(base, path.rpartition(".")[0] + ".kind", "linear")
    if path == "model.edges":  # a setting of a given graph alone
        base = with_value(base, "model.graph", "fixed")
    if path == "environments.targets":  # a setting of declared environments alone
        base = with_value(base, "environments.kind", "do")
    changed = with_value(base, path, other(path, LEAVES[path]))
    assert changed.fingerprint("data") != base.fingerprint("data")


def test_fingerprint_is_that_of_equal_settings_and_equal_data() -> None:
    assert config().fingerprint("data") == config().fingerprint("data")
    assert config().fingerprint("data") != config().fingerprint("other data")
    swapped = config(nodes={"response": 3, "type": 2})
    assert swapped.fingerprint("data") != config().fingerprint("data"), "the order of the nodes matters"
    reordered = config(modality=dict(reversed(list(config().modality.items()))))
    assert reordered.fingerprint("data") == config().fingerprint("data"), "that of the modalities does not"


def test_plain_values_survive_json_in_their_order() -> None:
    plain = config().to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert list(plain["nodes"]) == ["type", "response"]
    assert plain["modality"]["load"]["encoder"] == {"kind": "curve", "sizes": [8, 16]}


def test_epochs_that_are_planned() -> None:
    plan = config(pretraining=PretrainingConfig(epochs=7), training=TrainingConfig(epochs=4))
    assert (plan.pretraining_epochs, plan.total_epochs) == (7, 11)
    plan = config(pretraining=PretrainingConfig("none", 7), training=TrainingConfig(epochs=4))
    assert (plan.pretraining_epochs, plan.total_epochs) == (0, 4)
    assert plan.outcomes == (2, 3)


POSITIVE = [
    "kl_weight",
    "modality.image.weight",
    "model.latent_dim",
    "training.batch_size",
    "training.learning_rate",
    "graph.learning_rate",
    "graph.temperature_start",
    "graph.temperature_end",
    "graph.pseudo_count",
    "graph.acyclicity_tolerance",
    "mixture.pseudo_count",
    "mixture.variance_floor",
    "read_out.n_init",
    "modality.load.decoder.variance_initial",
    "modality.image.decoder.variance_floor",
]
SHARES = ["training.validation_fraction", "training.test_fraction", "training.modality_dropout"]
NOT_NEGATIVE = [
    "seed",
    "restart",
    "pretraining.epochs",
    "pretraining.kl_warmup",
    "training.epochs",
    "training.kl_warmup",
    "training.patience",
    "graph.start_steps",
    "graph.extra_steps",
    "graph.noise_start",
    "graph.noise_end",
    "graph.edge_rate",
    "graph.edge_penalty",
    "graph.table_penalty",
    "mixture.updates_per_epoch",
    "distillation.epochs",
    "modality.image.transform_knee",
]
REFUSED = [
    *((path, value) for path in POSITIVE for value in (0, -1, float("nan"), float("inf"))),
    *((path, value) for path in NOT_NEGATIVE for value in (-1, float("nan"), float("inf"))),
    *((path, value) for path in SHARES for value in (-0.1, 1.0, float("nan"))),
    *(("observe.fraction", value) for value in (0.0, 1.1, float("nan"))),
    ("seed", 2**32),
]


@pytest.mark.parametrize(("path", "value"), REFUSED)
def test_numbers_out_of_range_are_refused_by_name(path: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{path}: expected a number .*, got {value}$"):
        with_value(config(), path, value)


def test_every_number_has_a_range() -> None:
    ranged = {path for path, value in LEAVES.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    tested = {path for path, _ in REFUSED}
    assert {path.replace("load", "image") for path in ranged} == {path.replace("load", "image") for path in tested}


@pytest.mark.parametrize("path", NOT_NEGATIVE)
def test_zero_is_allowed_where_it_switches_off(path: str) -> None:
    with_value(config(), path, 0)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"nodes": {}}, "^nodes: expected at least one node, got none; give the outcomes"),
        ({"nodes": {"a": 2, "b": 1}}, "^nodes: expected at least 2 outcomes for b, an integer, got 1$"),
        ({"nodes": {"a": 2.0}}, "^nodes: expected at least 2 outcomes for a, an integer, got 2.0$"),
        (
            {"modality": {"a.b": ModalityConfig(EncoderConfig(sizes=(8, 0)))}},
            r"^modality.a.b.encoder.sizes: expected widths >= 1, got \[8, 0\]",
        ),
        (
            {"modality": {"a.b": ModalityConfig(decoder=DecoderConfig(sizes=(-8,)))}},
            r"^modality.a.b.decoder.sizes: expected widths >= 1, got \[-8\]",
        ),
    ],
)
def test_impossible_settings_are_refused(change: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        config(**change)


def test_read_out_cannot_merge_fewer_gaussians_than_cells() -> None:
    with_value(config(), "read_out.sizes", (6, 12))
    with pytest.raises(ValueError, match=r"^read_out.sizes: expected at least 6 Gaussians.*got \[12, 5\]; leave"):
        with_value(config(), "read_out.sizes", (12, 5))


def test_settings_do_not_change() -> None:
    settings = config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.seed = 3  # type: ignore[misc]


def test_paper_settings_change_what_the_paper_states_and_nothing_else() -> None:
    before, after = config(), paper_settings(config())
    changed = {path: value for path, value in leaves(after) if value != LEAVES[path]}
    assert changed == {
        "objective": "paper",
        "model.covariance": "diagonal",
        "training.learning_rate": 1e-6,
        "graph.learning_rate": 1e-6,
        "mixture.gaussians": "one",
        "read_out.final": False,
        "modality.image.decoder.variance": "fixed",
        "modality.load.decoder.variance": "fixed",
        "modality.image.decoder.variance_per": "modality",
        "modality.load.decoder.variance_per": "modality",
    }
    assert after.modality["load"].decoder.variance_initial == 1.0
    assert before == config()


def test_nodes_may_be_any_mapping_and_are_copied() -> None:
    nodes = dict(NODES)
    for given in (nodes, MappingProxyType(nodes)):
        settings = config(nodes=given)
        assert settings.fingerprint("data") == config().fingerprint("data")
        nodes["response"] = 5
        assert settings.outcomes == (2, 3)
        nodes["response"] = 3
