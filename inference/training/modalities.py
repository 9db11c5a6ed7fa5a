"""From samples and settings to what encoders and decoders need to know of every modality."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from inference.data.likelihood_support import check_support
from inference.data.multimodal import Dimensions, MultimodalData
from inference.data.scaling import Scale
from inference.data.stored import row_blocks
from inference.data.tensors import TensorData
from inference.training.config import FitConfig, ModalityConfig
from models.modality import Modality

__all__ = ["describe_modalities", "likelihood_weights", "scales"]

_ROWS_AT_ONCE = 2048


def scales(config: FitConfig) -> dict[str, Scale]:
    """Per modality, how it is standardised; discrete likelihoods take their values as they are."""
    return {name: _scale(entry) for name, entry in config.modality.items()}


def _scale(entry: ModalityConfig) -> Scale:
    if entry.decoder.likelihood not in ("normal", "student_t"):
        return Scale(standardise=False)
    is_robust = entry.decoder.likelihood == "student_t"
    return Scale(entry.standardise, entry.transform, entry.transform_knee, is_robust)


def describe_modalities(data: MultimodalData, training: TensorData, config: FitConfig) -> dict[str, Modality]:
    """Shapes, positions, units and standardisation.

    Args:
        data: The samples as they came.
        training: The training samples, standardised.
        config: The configuration, with an entry for every modality.

    Raises:
        ValueError: Values that the likelihood of a modality cannot have.
    """
    return {name: _describe(data, training, name, config.modality[name]) for name in data.modalities}


def _describe(data: MultimodalData, training: TensorData, name: str, entry: ModalityConfig) -> Modality:
    parts = torch.arange(training.n_samples, device=training.device).split(_ROWS_AT_ONCE)
    total = sum(float(training.values[name][rows].double().sum()) for rows in parts)
    axis = data.axis(name) if data.kinds[name] == "curve" else None
    named = data.dimensions.get(name) or Dimensions((), ())
    return Modality(
        name=name,
        event_shape=torch.Size(data.modalities[name].shape[1:]),
        kind=data.kinds[name],
        positions=None if axis is None else torch.as_tensor(axis.values, dtype=torch.get_default_dtype()),
        position_name="" if axis is None else axis.name,
        position_unit="" if axis is None else axis.unit,
        unit=data.units.get(name, ""),
        standardisation=training.standardisation[name],
        has_gaps=name in data.observed,
        n_categories=_check_support(data, name, entry),
        mean=total / max(training.n_elements[name], 1),
        dimensions=named.names,
        source_dimensions=named.source,
        coordinates=named.coordinates if axis is None else {},
    )


def _check_support(data: MultimodalData, name: str, entry: ModalityConfig) -> int:
    """The number of categories; block by block, as values may be on disk."""
    values, measured = data.modalities[name], data.measured(name)
    blocks = row_blocks(len(values), values.nbytes // len(values))
    likelihood = entry.decoder.likelihood
    return max(check_support(name, likelihood, values[rows], measured[rows], rows.start) for rows in blocks)


def likelihood_weights(config: FitConfig, modalities: Mapping[str, Modality]) -> dict[str, float]:
    """The power of every likelihood: its `weight`, times mean D / D_m where `likelihood_scaling` is `dimension`."""
    sizes = {name: math.prod(modality.event_shape) for name, modality in modalities.items()}
    mean = sum(sizes.values()) / len(sizes)
    rescaled = config.model.likelihood_scaling == "dimension"
    return {name: config.modality[name].weight * (mean / size if rescaled else 1.0) for name, size in sizes.items()}
