"""Settings for data that come without any: networks by kind, batches by the number of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inference.data.multimodal import ModalityKind, MultimodalData
from inference.training.config import (
    DecoderConfig,
    DistillationConfig,
    EncoderConfig,
    FitConfig,
    ModalityConfig,
    TrainingConfig,
)

__all__ = ["default_batch_size", "default_config", "default_modality"]

_DISTILLATION_EPOCHS = 20
_SHORTEST_CURVE = 4  # two convolutions of width 3 leave nothing of it


def default_config(data: MultimodalData, nodes: Mapping[str, int]) -> FitConfig:
    """The configuration for samples of which nothing else is known.

    Several modalities: unimodal encoders are distilled, or else what samples with one of them alone are said to be is
    wrong with confidence (docs/missing.md).

    Args:
        data: The samples.
        nodes: Outcomes per node, by name.
    """
    return FitConfig(
        nodes=nodes,
        training=TrainingConfig(batch_size=default_batch_size(data.n_samples)),
        distillation=DistillationConfig(_DISTILLATION_EPOCHS if _overlap(data) else 0),
        modality={name: default_modality(kind, data.modalities[name].shape[1:]) for name, kind in data.kinds.items()},
    )


def default_batch_size(n_samples: int) -> int:
    """256, or less for fewer samples: the default number of epochs needs about 16 steps in each to get anywhere."""
    return min(256, max(8, n_samples // 16))


def _overlap(data: MultimodalData) -> bool:
    """Whether some sample has two modalities, so that the one can be taught by the other."""
    return bool((np.sum(list(data.present.values()), axis=0) > 1).any())


def default_modality(kind: ModalityKind, shape: Sequence[int]) -> ModalityConfig:
    """Networks by the kind of a modality: 1-D convolutions encode curves, unless too short, perceptrons do the rest.

    Args:
        kind: The kind.
        shape: Shape of one sample.
    """
    if kind == "curve" and shape[0] > _SHORTEST_CURVE:
        return ModalityConfig(EncoderConfig("curve", (8, 16)), DecoderConfig("mlp", (16, 32, 64)))
    return ModalityConfig()
