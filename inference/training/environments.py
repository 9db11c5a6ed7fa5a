"""The environments of a data set, as a labeller takes them."""

from __future__ import annotations

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.labelling.environment_labeller import Environments
from inference.training.config import FitConfig
from inference.training.graph_choice import known_of_graph

__all__ = ["FEWEST_SAMPLES", "declared_environments"]

FEWEST_SAMPLES = 20
"""Training samples of an environment, below which nothing is searched in it."""


def declared_environments(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Environments | None:
    """The environments with interventions; None where the configuration declares none.

    Those that no training sample was taken in are left out.

    Args:
        config: The configuration.
        data: The samples.
        training: Positions of the training samples in the data set.

    Raises:
        ValueError: Samples without environments, environments with next to no samples, or a target of one that is not
            there or not intervened upon.
    """
    if config.environments.kind == "none":
        return None
    targets, names = config.environments.targets, data.environment_names
    codes = _training_codes(data, training)
    odd = next((name for name in targets if name not in names[1:]), None)
    if odd is not None:
        raise ValueError(
            f"environments.targets: expected environments with an intervention ({', '.join(names[1:]) or 'none'}), "
            f"got {odd!r}; write ENVIRONMENT=NODE"
        )
    present, codes = np.unique(codes, return_inverse=True)
    _check_sizes(data, present, np.bincount(codes))
    used = tuple(names[code] for code in present)
    return Environments(
        config.nodes,
        codes,
        used,
        {name: targets[name] for name in used if name in targets},
        tuple(config.visible.values()),
        known_of_graph(config),
    )


def _training_codes(data: MultimodalData, training: np.ndarray) -> np.ndarray:
    if data.environment is None:
        raise ValueError(
            f"environments.kind: expected samples of {data.name} with environments, got none; name the variable that "
            "tells them with --environment"
        )
    codes: np.ndarray = data.environment[training]
    return codes


def _check_sizes(data: MultimodalData, present: np.ndarray, sizes: np.ndarray) -> None:
    """Refuse environments that a search could say nothing of."""
    names = data.environment_names
    if present[0] != 0:
        raise ValueError(
            f"environments.kind: expected training samples of the environment {names[0]!r}, without intervention, got "
            f"none; name the level that stands for it ({', '.join(names[1:])}) with --observational"
        )
    if len(present) < 2:
        raise ValueError(
            f"environments.kind: expected training samples under interventions, got observational ones alone in "
            f"{data.name}; leave it out"
        )
    if sizes.min() < FEWEST_SAMPLES:
        raise ValueError(
            f"environment: expected {FEWEST_SAMPLES} training samples in each at least, got {sizes.min()} in "
            f"{names[present[sizes.argmin()]]!r}; leave its samples out"
        )
