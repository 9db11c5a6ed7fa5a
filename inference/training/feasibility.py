"""Whether a configuration can be fitted to a data set: told before anything is allocated."""

from __future__ import annotations

import math

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.graphs.learners import POSTHOC, check_installed
from inference.results.text import format_count
from inference.training.config import FitConfig

__all__ = ["check_feasible"]


def check_feasible(data: MultimodalData, config: FitConfig, split: np.ndarray) -> None:
    """Refuse a configuration that these data cannot be fitted with.

    Args:
        data: The samples.
        config: The configuration, with an entry for every modality.
        split: `train`, `validation` or `test` per sample.

    Raises:
        ValueError: More cells than training samples, a learner of graphs that is not installed, settings or a mask for
            other modalities than there are, a modality that no training sample has, or samples without any modality
            where the guide has no prior expert.
    """
    if config.model.graph in POSTHOC:
        check_installed(config.model.graph)
    _check_cells(math.prod(config.outcomes), int((split == "train").sum()))
    _check_modalities(data, config)
    _check_mask(data, config)
    for name, present in data.present.items():
        _check_trained(name, present, split)
    if len(data.modalities) == 1:
        _check_several(config)
    elif config.distillation.epochs and not (np.sum(list(data.present.values()), axis=0) > 1).any():
        raise ValueError(
            f"distillation.epochs: expected 0 where no sample has two modalities, got {config.distillation.epochs}; "
            "there is nothing to teach one by the other"
        )
    if not config.guide.prior_expert:
        _check_presence(data, "leave these samples out" + ("" if config.mask else ", or set guide.prior_expert"))


def _check_cells(n_cells: int, n_training: int) -> None:
    if n_training < n_cells:
        raise ValueError(
            f"nodes: expected at least as many training samples as cells, got {n_training} samples for "
            f"{format_count(n_cells)} cells (the product of the outcomes); give fewer nodes or outcomes, or more "
            "samples"
        )


def _check_modalities(data: MultimodalData, config: FitConfig) -> None:
    if set(data.modalities) != set(config.modality):
        raise ValueError(
            f"modality: expected settings for {', '.join(data.modalities)}, the modalities of {data.name}, "
            f"got settings for {', '.join(config.modality) or 'none'}"
        )


def _check_mask(data: MultimodalData, config: FitConfig) -> None:
    if config.mask and set(data.modalities) != set(config.mask):
        raise ValueError(
            f"mask: expected the nodes that each of {', '.join(data.modalities)} sees, the modalities of {data.name}, "
            f"got those of {', '.join(config.mask)}; name every modality once"
        )


def _check_trained(name: str, present: np.ndarray, split: np.ndarray) -> None:
    """Nothing is known of a modality that is measured on held-out samples alone, not even its scale."""
    if not (present & (split == "train")).any():
        raise ValueError(
            f"{name}: expected it in some training samples, got it in {present.sum()} of {len(present)} samples, none "
            "of them for training; hold out fewer samples, change the seed, or leave this modality out"
        )


def _check_several(config: FitConfig) -> None:
    for name, value in (
        ("training.modality_dropout", config.training.modality_dropout),
        ("distillation.epochs", config.distillation.epochs),
    ):
        if value:
            raise ValueError(f"{name}: expected 0 with one modality, got {value}; it is about the absence of others")


def _check_presence(data: MultimodalData, what_to_do: str) -> None:
    absent = ~np.any(list(data.present.values()), axis=0)
    if absent.any():
        raise ValueError(
            f"{data.name}: expected at least one modality per sample, got none for {absent.sum()} of {len(absent)}, "
            f"first sample {absent.argmax()}; {what_to_do}"
        )
