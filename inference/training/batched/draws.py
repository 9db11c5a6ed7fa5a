"""Where the random numbers of starts that are trained together come from.

Every epoch has seeds of its own, derived from those of the configuration: a run that was stopped goes on as if it had
not been. The order of the samples, and what is hidden of them, is the same for all starts; noise is each start's own.
What a start draws does not depend on which others there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from inference.training.config import FitConfig

__all__ = ["Noise", "seed_of_order"]

_ORDER, _NOISE = 1, 2


def seed_of_order(config: FitConfig, epoch: int) -> int:
    """Seed of what all starts share in an epoch: minibatches and hidden modalities."""
    return _seed(config.seed, _ORDER, epoch)


class Noise:
    """Standard normal noise of each start in an epoch.

    Args:
        configs: The configurations of the starts.
        epoch: Finished epochs before it.
        like: Its type and device are those of the noise; drawn on the CPU, so that devices agree.
    """

    def __init__(self, configs: Sequence[FitConfig], epoch: int, like: Tensor) -> None:
        seeds = [_seed(config.start_seed, _NOISE, epoch) for config in configs]
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._like = like

    def normal(self, *shape: int) -> Tensor:
        """Draws, `[K, *shape]`."""
        draws = [torch.randn(shape, generator=generator, dtype=self._like.dtype) for generator in self._generators]
        return torch.stack(draws).to(self._like.device)


def _seed(seed: int, stream: int, epoch: int) -> int:
    return int(np.random.SeedSequence((seed, stream, epoch)).generate_state(1)[0])
