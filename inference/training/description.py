"""What must be known of a fit, next to its weights, to use it without the data that it was fitted to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from inference.data.fingerprint import DataFingerprint
from inference.training.config import FitConfig
from inference.training.plain_config import from_plain
from models.modality import Modality
from models.standardisation import Standardisation

__all__ = ["VERSION", "RunDescription"]

VERSION = 1


@dataclass(frozen=True)
class RunDescription:
    """A configuration and what the data added to it.

    Attributes:
        config: The configuration.
        modalities: What is known of every modality.
        covariate_levels: Names of the levels of every covariate, in the order in which decoders see them.
        supplied: Per modality whose law or decoder was passed as an object, the name of its class.
        dataset: Name of the data set.
        outcome_names: Names of the outcomes of every node, in the order of the nodes.
        environment_names: Names of the environments that the model tells apart, in the order of their codes.
        components: Per setting whose component was passed as an object, the name of its class.
        data: Fingerprint of the samples; None in a run of an older version.
    """

    config: FitConfig
    modalities: Mapping[str, Modality]
    covariate_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    supplied: Mapping[str, str] = field(default_factory=dict)
    dataset: str = ""
    outcome_names: tuple[tuple[str, ...], ...] = ()
    environment_names: tuple[str, ...] = ()
    components: Mapping[str, str] = field(default_factory=dict)
    data: DataFingerprint | None = None

    @property
    def n_covariates(self) -> int:
        """Indicators that decoders see, one for each level of each covariate."""
        return sum(map(len, self.covariate_levels.values()))

    def to_plain(self) -> dict[str, Any]:
        """Nested plain values, as a checkpoint holds them."""
        return {
            "version": VERSION,
            "config": self.config.to_dict(),
            "modalities": {name: _plain_modality(modality) for name, modality in self.modalities.items()},
            "covariate_levels": {name: list(levels) for name, levels in self.covariate_levels.items()},
            "supplied": dict(self.supplied),
            "dataset": self.dataset,
            "outcome_names": [list(names) for names in self.outcome_names],
            "environment_names": list(self.environment_names),
            "components": dict(self.components),
            "data": None if self.data is None else self.data.to_plain(),
        }

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> RunDescription:
        """The inverse of `to_plain`.

        Raises:
            ValueError: It was written by another version of the program.
        """
        if values.get("version") != VERSION:
            raise ValueError(f"expected a description of version {VERSION}, got {values.get('version')}")
        return cls(
            from_plain(FitConfig, values["config"]),
            {name: _modality(entry) for name, entry in values["modalities"].items()},
            {name: tuple(levels) for name, levels in values["covariate_levels"].items()},
            values["supplied"],
            values["dataset"],
            tuple(tuple(names) for names in values.get("outcome_names", ())),
            tuple(values.get("environment_names", ())),
            values.get("components", {}),
            None if values.get("data") is None else DataFingerprint.from_plain(values["data"]),
        )


_NAMES = ("dimensions", "source_dimensions")


def _plain_modality(modality: Modality) -> dict[str, Any]:
    values = {entry.name: getattr(modality, entry.name) for entry in dataclasses.fields(Modality)}
    return values | {
        "event_shape": list(modality.event_shape),
        "positions": None if modality.positions is None else modality.positions.tolist(),
        "standardisation": dataclasses.asdict(modality.standardisation),
        **{name: list(getattr(modality, name)) for name in _NAMES},
        "coordinates": {dim: list(places) for dim, places in modality.coordinates.items()},
    }


def _modality(values: Mapping[str, Any]) -> Modality:
    positions = values["positions"]
    shaped = {
        "event_shape": torch.Size(values["event_shape"]),
        "positions": None if positions is None else torch.tensor(positions, dtype=torch.get_default_dtype()),
        "standardisation": Standardisation(**values["standardisation"]),
        **{name: tuple(values.get(name, ())) for name in _NAMES},
        "coordinates": {dim: tuple(places) for dim, places in values.get("coordinates", {}).items()},
    }
    return Modality(**{**values, **shaped})
