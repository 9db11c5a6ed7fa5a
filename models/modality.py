"""What encoders and decoders need to know of a modality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from models.standardisation import Standardisation

__all__ = ["Modality"]


@dataclass(frozen=True, eq=False)
class Modality:
    """One kind of measurement, as the networks meet it.

    Attributes:
        name: Its name.
        event_shape: Shape of one sample.
        kind: `image` ([height, width, channel]), `curve` ([position]) or `vector`.
        positions: Positions of the elements of a curve `[D]`, in `position_unit`; None for other kinds.
        position_name: Name of the positions, for example `strain`.
        position_unit: Unit of the positions; empty if it has none.
        unit: Unit of the values; empty if they have none.
        standardisation: Between the unit of the values and the scale that is modelled.
        has_gaps: Whether single elements are missing in some samples.
        n_categories: Number of categories of categorical elements, coded from 0; 1 for all else.
        mean: Mean of the measured training values, on the scale of the model.
        dimensions: Names of the dimensions of one sample, where the data had names; the one channel of images without
            channels in the data has none.
        source_dimensions: The same names in the order of the data.
        coordinates: Places along dimensions, by their name: numbers or names.
    """

    name: str
    event_shape: torch.Size
    kind: str = "vector"
    positions: Tensor | None = None
    position_name: str = ""
    position_unit: str = ""
    unit: str = ""
    standardisation: Standardisation = field(default_factory=Standardisation)
    has_gaps: bool = False
    n_categories: int = 1
    mean: float = 0.0
    dimensions: tuple[str, ...] = ()
    source_dimensions: tuple[str, ...] = ()
    coordinates: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)
