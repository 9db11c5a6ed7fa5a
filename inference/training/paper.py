"""The settings that the paper states."""

from __future__ import annotations

import dataclasses
from typing import Any

from inference.training.config import FitConfig

__all__ = ["paper_settings"]


def paper_settings(config: FitConfig) -> FitConfig:
    """The settings that the paper states, for the record: they do not train (docs/errata.md item 21).

    Learning rate 1e-6 for everything, unit decoder variance, one per modality, the paper's objective, one Gaussian per
    cell with diagonal covariance, the graph learned by gradients, and no second read-out.
    """
    rate = 1e-6
    unit: dict[str, Any] = {"variance": "fixed", "variance_initial": 1.0, "variance_per": "modality"}
    modality = {
        name: dataclasses.replace(entry, decoder=dataclasses.replace(entry.decoder, **unit))
        for name, entry in config.modality.items()
    }
    return dataclasses.replace(
        config,
        objective="paper",
        kl_weight=1.0,
        model=dataclasses.replace(config.model, prior="dag", covariance="diagonal", graph="hodge", edges=()),
        guide=dataclasses.replace(config.guide, fusion="poe"),
        training=dataclasses.replace(config.training, learning_rate=rate, kl_warmup=0),
        graph=dataclasses.replace(config.graph, learning_rate=rate),
        mixture=dataclasses.replace(config.mixture, gaussians="one", updates="em"),
        read_out=dataclasses.replace(config.read_out, final=False),
        modality=modality,
    )
