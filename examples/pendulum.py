"""A pendulum and its shadow: four nodes whose edges can all be told from observation alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import expit

from examples.arguments import check_at_least, check_seed
from examples.ceilings import bayes_accuracy, normal_log_likelihood
from examples.discrete_network import DiscreteNetwork
from examples.pendulum_scene import draw_scenes, shadow
from inference.data.multimodal import MultimodalData
from inference.training.config import FitConfig, ModalityConfig, ModelConfig
from inference.training.experiment import Experiment

__all__ = ["EXPERIMENTS", "pendulum", "pendulum_network", "state_means"]

_LEVELS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    2: {"angle": ("left", "right"), "light": ("high", "low")},
    3: {"angle": ("left", "middle", "right"), "light": ("high", "middle", "low")},
}
_SHADOW_LEVELS = {"length": ("short", "long"), "position": ("near", "far")}
_PROBABILITIES = {
    2: {"angle": [0.55, 0.45], "light": [0.45, 0.55]},
    3: {"angle": [0.35, 0.35, 0.3], "light": [0.3, 0.3, 0.4]},
}
_RANGES = {"angle": (-25.0, 15.0), "light": (5.0, 40.0), "length": (0.45, 0.95), "position": (0.1, 0.7)}
_SCALES = {"angle": 4.0, "light": 2.5, "length": 0.1, "position": 0.12}
_THRESHOLDS = {"length": 0.5, "position": 0.4}
_SOFTNESS = 0.25


def pendulum(n_samples: int = 4096, seed: int = 0, levels: int = 2) -> MultimodalData:
    r"""Generate pictures of a pendulum, a light and a shadow (after CausalVAE, Yang et al., CVPR 2021).

    The angle of the pendulum and that of the light cause both the length and the position of the shadow:

        angle  light
          |  \/  |
          |  /\  |
        length  position

    Each node is a category. Length and position are noisy: with l and x the length and the position that `shadow` has
    for the mean angles of the two levels,

    $$p(\text{long} \mid \text{angle}, \text{light}) = \sigma((l - 0.5) / 0.25), \qquad
      p(\text{far} \mid \text{angle}, \text{light}) = \sigma((x - 0.4) / 0.25).$$

    The two colliders make all four edges compelled. What is drawn are four numbers (`state_means`), normal around the
    mean of their level with standard deviations 4°, 2.5°, 0.1 and 0.12 (lengths of the rod). Cells and numbers have
    streams of their own: the first samples do not depend on `n_samples`.

    Args:
        n_samples: Number of pictures.
        seed: Seed of the generator, not negative.
        levels: Levels of angle and of light, 2 or 3 (then give --nodes angle=3,light=3,length=2,position=2).

    Returns:
        One modality `image`, float32 `[sample, 32, 32, 3]` in [0, 1]; the four factors; as measurements the angles in
        degrees, and length and position of the shadow; the Bayes ceiling given these.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_at_least("n_samples", n_samples, 1)
    check_seed(seed)
    network = pendulum_network(levels)
    cells, *streams = np.random.default_rng(seed).spawn(1 + len(network.levels))
    factors = network.draw(cells.random(n_samples))
    means = state_means(levels)
    state = {
        name: means[name][codes] + _SCALES[name] * stream.standard_normal(n_samples)
        for (name, codes), stream in zip(factors.items(), streams, strict=True)
    }
    return MultimodalData(
        name="pendulum" if levels == 2 else f"pendulum_{levels}",
        modalities={"image": draw_scenes(**state)},
        present={"image": np.ones(n_samples, dtype=bool)},
        kinds={"image": "image"},
        factors=factors,
        factor_levels=network.levels,
        measurements=state,
        bayes_ceiling=_bayes_ceiling(network, means, state, factors),
        true_joint=network.joint,
        true_adjacency=network.adjacency,
    )


def pendulum_network(levels: int = 2) -> DiscreteNetwork:
    """p(angle, light, length, position) with its graph.

    Raises:
        ValueError: If there are no such levels.
    """
    if levels not in _LEVELS:
        raise ValueError(f"levels: expected 2 or 3, got {levels}; choose one of these")
    means = state_means(levels)
    length, position = shadow(means["angle"][:, None], means["light"])
    above = {"length": length, "position": position}
    chance = {name: expit((value - _THRESHOLDS[name]) / _SOFTNESS) for name, value in above.items()}
    causes = {name: np.array(row) for name, row in _PROBABILITIES[levels].items()}
    return DiscreteNetwork(
        levels={**_LEVELS[levels], **_SHADOW_LEVELS},
        parents={"angle": (), "light": (), "length": ("angle", "light"), "position": ("angle", "light")},
        tables={**causes, **{name: np.stack([1 - p, p], axis=-1) for name, p in chance.items()}},
    )


def state_means(levels: int = 2) -> dict[str, np.ndarray]:
    """Mean of the number that each level of each node stands for: degrees, and lengths of the rod."""
    sizes = {"angle": levels, "light": levels, "length": 2, "position": 2}
    return {name: np.linspace(*_RANGES[name], size) for name, size in sizes.items()}


def _bayes_ceiling(
    network: DiscreteNetwork,
    means: Mapping[str, np.ndarray],
    state: Mapping[str, np.ndarray],
    factors: Mapping[str, np.ndarray],
) -> float:
    levels = dict(zip(network.levels, np.indices(network.shape), strict=True))
    parts = [normal_log_likelihood(state[name], means[name][levels[name]], _SCALES[name]) for name in state]
    return bayes_accuracy(np.log(network.joint) + np.sum(parts, axis=0), factors)


# Four quantities vary on their own in every cell.
_CONFIG = FitConfig(
    nodes={"angle": 2, "light": 2, "length": 2, "position": 2},
    model=ModelConfig(latent_dim=4),
    modality={"image": ModalityConfig(standardise=False)},
)

EXPERIMENTS: Mapping[str, Experiment] = {"pendulum": Experiment(pendulum, _CONFIG)}
