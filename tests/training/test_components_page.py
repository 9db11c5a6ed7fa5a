"""docs/components.md lists every component and every pair that is refused, as they are."""

from __future__ import annotations

import re
from typing import Any, get_args, get_type_hints

import pytest
from component_levels import LEVELS
from components_page import PAGE, made_anew, values_by_setting

from causalpima.guides.encoders import ENCODERS
from causalpima.guides.fusion import FUSIONS
from causalpima.inference.training.components import GRAPHS, PRIORS
from causalpima.inference.training.config import (
    DecoderConfig,
    EnvironmentsConfig,
    FitConfig,
    GuideConfig,
    MixtureConfig,
    ModelConfig,
    ObserveConfig,
    PretrainingConfig,
)
from causalpima.models.decoders.networks import NETWORKS
from causalpima.models.decoders.physics.laws import LAWS

TEXT = PAGE.read_text(encoding="utf-8")

TABLES: dict[str, list[str]] = {
    "model.prior": list(PRIORS),
    "model.graph": list(GRAPHS),
    "guide.fusion": list(FUSIONS),
    "modality.NAME.encoder.kind": list(ENCODERS),
    "modality.NAME.decoder.kind": [*NETWORKS, *LAWS],
}

CHOICES: dict[str, tuple[type, str]] = {
    "model.covariance": (ModelConfig, "covariance"),
    "objective": (FitConfig, "objective"),
    "guide.graph": (GuideConfig, "graph"),
    "pretraining.kind": (PretrainingConfig, "kind"),
    "mixture.updates": (MixtureConfig, "updates"),
    "mixture.gaussians": (MixtureConfig, "gaussians"),
    "modality.NAME.decoder.variance": (DecoderConfig, "variance"),
    "modality.NAME.decoder.likelihood": (DecoderConfig, "likelihood"),
    "environments.kind": (EnvironmentsConfig, "kind"),
    "observe.use": (ObserveConfig, "use"),
}


@pytest.mark.parametrize("setting", TABLES)
def test_every_entry_of_a_table_has_its_row(setting: str) -> None:
    listed = values_by_setting(TEXT)[setting]
    assert sorted(listed) == sorted(TABLES[setting])


@pytest.mark.parametrize("setting", CHOICES)
def test_every_value_of_a_choice_is_listed(setting: str) -> None:
    part, field = CHOICES[setting]
    row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{setting}` | `"))
    listed: Any = re.findall(r"`([^`]+)`", row.split("|")[2])
    assert sorted(listed) == sorted(get_args(get_type_hints(part)[field]))


def test_every_varied_setting_is_on_the_page() -> None:
    named = {name for levels in LEVELS.values() for changes in levels.values() for name in changes}
    settings = {re.sub(r"^(picture|curve)\.|^(?=decoder|encoder)", "modality.NAME.", name) for name in named}
    own = {"modality.NAME.decoder.sizes", "modality.NAME.encoder.sizes", "modality.NAME.decoder.source"}
    own |= {"model.edges", "observe.variables", "model.latent_dim", "mask", "environments.targets"}
    short = {name.replace("modality.NAME.", "") for name in settings - own}
    assert [name for name in sorted(short) if f"{name}`" not in TEXT] == []


def test_refused_pairs_are_those_of_the_checks() -> None:
    assert made_anew(TEXT) == TEXT, "write them anew: python tests/training/components_page.py"
