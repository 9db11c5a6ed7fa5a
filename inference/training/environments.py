"""The environments of a data set, as a labeller takes them."""

from __future__ import annotations

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.labelling.environment_labeller import Environments
from inference.training.config import FitConfig

__all__ = ["declared_environments"]


def declared_environments(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Environments | None:
    """The environments that name clusters; None where the configuration declares none.

    Those that no training sample was taken in are left out.

    Args:
        config: The configuration.
        data: The samples.
        training: Positions of the training samples in the data set.

    Raises:
        ValueError: Samples without environments, or a target of one that is not there or not intervened upon.
    """
    if config.environments.kind != "do":
        return None
    if data.environment is None:
        raise ValueError(
            f"environments.kind: expected samples of {data.name} with environments, got none; name the variable that "
            "tells them with --environment"
        )
    targets, names = config.environments.targets, data.environment_names
    odd = next((name for name in targets if name not in names[1:]), None)
    if odd is not None:
        raise ValueError(
            f"environments.targets: expected environments with an intervention ({', '.join(names[1:]) or 'none'}), "
            f"got {odd!r}; write ENVIRONMENT=NODE"
        )
    if not (data.environment[training] == 0).any():
        raise ValueError(
            f"environments.kind: expected training samples of the environment {names[0]!r}, without intervention, got "
            f"none; name the level that stands for it ({', '.join(names[1:])}) with --observational"
        )
    present, codes = np.unique(data.environment[training], return_inverse=True)
    if len(present) < 2:
        raise ValueError(
            f"environments.kind: expected training samples under interventions, got observational ones alone in "
            f"{data.name}; leave it out"
        )
    used = tuple(names[code] for code in present)
    return Environments(
        config.nodes,
        codes,
        used,
        {name: targets[name] for name in used if name in targets},
        tuple(config.visible.values()),
    )
