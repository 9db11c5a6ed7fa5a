"""What the paper does to the lattices before it fits: every picture standardised, and flipped copies of the samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from inference.data.multimodal import MultimodalData

__all__ = ["with_flips", "with_standardised_images"]

# Axes of `[sample, height, width, channel]` that are reversed, and what a copy's name says of it.
_FLIPS: Mapping[str, tuple[int, ...]] = {"upside down": (1,), "mirrored": (2,), "turned": (1, 2)}
_COPIED = ("modalities", "present", "observed", "factors", "measurements", "covariates")


def with_standardised_images(data: MultimodalData, image: str = "image") -> MultimodalData:
    r"""The same samples, each picture with mean 0 and variance 1 over its elements (paper, appendix on lattices).

    $$x_{np} \to (x_{np} - \bar x_n) / \sqrt{\overline{(x_{np} - \bar x_n)^2}}$$

    Brightness and contrast of a picture, of the lamp as of the sample, are gone then. Nothing is learned from other
    samples, so it may come before the split. A picture of one grey value becomes zeros; rows of absent ones stay so.

    Args:
        data: Samples without gaps in their pictures.
        image: Name of the modality.
    """
    pictures = np.asarray(data.modalities[image], dtype=np.float64)
    over = tuple(range(1, pictures.ndim))
    centred = pictures - pictures.mean(axis=over, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=over, keepdims=True))
    scaled = np.where(spread > 1e-6, centred / np.maximum(spread, 1e-6), 0.0)
    return dataclasses.replace(data, modalities={**data.modalities, image: scaled.astype(np.float32)})


def with_flips(data: MultimodalData, image: str = "image") -> MultimodalData:
    """Every sample four times: as it is, and with its picture upside down, mirrored, and both, which is turned by 180°.

    All else is repeated. The four are one group, so that they stay on one side of every split and are counted once
    where groups are; samples without a picture are not copied. Originals come first.

    Args:
        data: The samples.
        image: Name of the modality.
    """
    seen = np.flatnonzero(data.present[image])
    rows = np.concatenate([np.arange(data.n_samples), *[seen] * len(_FLIPS)])
    copied = _rows(data, rows)
    pictures = [data.modalities[image], *(np.flip(data.modalities[image][seen], axes) for axes in _FLIPS.values())]
    copied["modalities"][image] = np.concatenate(pictures)
    groups = np.arange(data.n_samples) if data.groups is None else data.groups
    environment = None if data.environment is None else data.environment[rows]
    names = _names(data, seen)
    return dataclasses.replace(data, **copied, groups=groups[rows], sample_names=names, environment=environment)


def _rows(data: MultimodalData, rows: np.ndarray) -> dict[str, Any]:
    return {part: {name: values[rows] for name, values in getattr(data, part).items()} for part in _COPIED}


def _names(data: MultimodalData, seen: np.ndarray) -> np.ndarray | None:
    if data.sample_names is None:
        return None
    copies = [f"{name}, {how}" for how in _FLIPS for name in data.sample_names[seen]]
    return np.array([*data.sample_names.tolist(), *copies])
