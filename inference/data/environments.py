"""The variable that tells in which environment a sample was taken."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from inference.data.categories import to_categories

__all__ = ["OBSERVATIONAL", "Environment", "observational_rows", "to_environment"]

OBSERVATIONAL = "observational"
"""The level without intervention, unless another one is named."""


class Environment(NamedTuple):
    """Names of the environments, the observational one first, and the code of each sample `[sample]`."""

    names: tuple[str, ...]
    codes: np.ndarray


def observational_rows(is_training: np.ndarray, environment: np.ndarray | None) -> np.ndarray:
    """Training samples whose nodes follow p(N): under interventions they follow another distribution, bool `[n]`.

    Args:
        is_training: Bool `[n]`.
        environment: Codes, 0 = observational, `[n]`; None: there are none.
    """
    return is_training if environment is None else is_training & (environment == 0)


def to_environment(name: str, values: Any, n_samples: int, observational: str | None) -> Environment:
    """Environments from labels; the observational one stands first, whether a sample was taken in it or not.

    Args:
        name: Name of the variable, for messages.
        values: Integers, booleans or texts `[sample]`, one for every sample.
        n_samples: Number of samples.
        observational: The level without intervention; None: `OBSERVATIONAL`.

    Raises:
        ValueError: Values that are no such labels, or a level that was named and is not there.
    """
    levels, codes = to_categories(name, values, kind="level")
    if len(codes) != n_samples:
        raise ValueError(
            f"{name}: expected {n_samples} samples, as many as the modalities have, got {len(codes)}; give one entry "
            "per sample"
        )
    if observational is not None and observational not in levels:
        raise ValueError(
            f"observational: expected a level of {name} ({', '.join(levels[:8])}), got {observational!r}; name the "
            "environment without intervention"
        )
    first = observational or OBSERVATIONAL
    names = (first, *(level for level in levels if level != first))
    return Environment(names, np.array([names.index(level) for level in levels], dtype=np.int64)[codes])
