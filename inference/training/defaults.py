"""Settings for data that come without any: networks by kind, batches by the number of samples."""

from __future__ import annotations

from collections.abc import Mapping

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
        distillation=DistillationConfig(_DISTILLATION_EPOCHS if len(data.kinds) > 1 else 0),
        modality={name: default_modality(kind) for name, kind in data.kinds.items()},
    )


def default_batch_size(n_samples: int) -> int:
    """256, or less for fewer samples: the default number of epochs needs about 16 steps in each to get anywhere."""
    return min(256, max(8, n_samples // 16))


def default_modality(kind: ModalityKind) -> ModalityConfig:
    """Networks by the kind of a modality: 1-D convolutions encode curves, perceptrons do the rest."""
    if kind == "curve":
        return ModalityConfig(EncoderConfig("curve", (8, 16)), DecoderConfig("mlp", (16, 32, 64)))
    return ModalityConfig()
