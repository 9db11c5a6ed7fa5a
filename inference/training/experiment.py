"""A named experiment: data with the configuration that goes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inference.data.multimodal import MultimodalData
from inference.training.config import FitConfig

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """Data and configuration under one name.

    Attributes:
        make: Makes the data; its arguments (but `seed`) become flags of the command line.
        config: Configuration for these data.
        options: Arguments of `make` that differ from its defaults.
    """

    make: Callable[..., MultimodalData]
    config: FitConfig
    options: Mapping[str, Any] = field(default_factory=dict)
