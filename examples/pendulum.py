"""A pendulum and its shadow: four nodes whose edges can all be told from observation alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import expit

from causalpima.examples.discrete_network import DiscreteNetwork
from causalpima.examples.experiment import bayes_accuracy, check_at_least, check_seed, normal_log_likelihood
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.config import Experiment, FitConfig, ModalityConfig, ModelConfig

__all__ = [
    "EXPERIMENTS",
    "draw_scenes",
    "pendulum",
    "pendulum_network",
    "shadow",
    "state_means",
]


# A pendulum, a light and the shadow on the ground: geometry and drawing.


_SIDE = 32
_LEFT, _BOTTOM, _WIDTH = -1.0, -0.25, 2.8
_PIVOT = 1.4
_ROD = 1.0
_LIGHT_DISTANCE = 0.7
# Half-widths of what is drawn, and colours.
_ROD_SIZE, _BOB_SIZE, _LIGHT_SIZE, _SHADOW_SIZE = 0.05, 0.2, 0.2, 0.1
_GREY, _YELLOW, _BLUE = (0.8, 0.8, 0.8), (1.0, 0.9, 0.2), (0.2, 0.4, 1.0)


def shadow(angle: np.ndarray, light: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Length and position (middle) of the shadow that a rod throws on the ground, in lengths of the rod.

    The rod, of length 1, hangs from a pivot at height H = 1.4 above the origin and is turned by the angle a from the
    vertical, so that its end is at `(sin a, H - cos a)`. The light comes from the upper left, in parallel rays at the
    angle b from the vertical: along a ray, x grows by tan b for every unit of height that is lost, and what is at
    `(x, y)` throws its shadow at x + y tan b. The two ends of the rod throw theirs at

    $$x_1 = H \tan b, \qquad x_2 = \sin a + (H - \cos a) \tan b = x_1 + \frac{\sin(a - b)}{\cos b},$$

    so that the shadow is |sin(a - b)| / cos b long (none where the rod points at the light) and its middle is at
    (x_1 + x_2) / 2.

    Args:
        angle: Of the pendulum, degrees, to the right is positive.
        light: Of the rays, degrees from the vertical, below 90.
    """
    a, b = np.radians(angle), np.radians(light)
    of_pivot, extent = _PIVOT * np.tan(b), _ROD * np.sin(a - b) / np.cos(b)
    return np.abs(extent), of_pivot + extent / 2


def draw_scenes(angle: np.ndarray, light: np.ndarray, length: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Draw pendulum (grey), light (yellow, on the ray through the pivot) and shadow (blue), anti-aliased on black.

    Everything is a segment with round ends; a pixel whose centre is at distance d from it, in pixels, is covered by
    `clip(half-width - d + 0.5, 0, 1)`. The shadow is drawn as told, not as `shadow` has it.

    Args:
        angle: Of the pendulum, degrees, `[sample]`.
        light: Of the rays, degrees from the vertical, `[sample]`.
        length: Of the shadow, `[sample]`; drawn as 0 where it is negative.
        position: Of its middle, `[sample]`.

    Returns:
        Images, float32 `[sample, 32, 32, 3]` in [0, 1], row 0 on top; what leaves the frame is cut off.
    """
    a, b = np.radians(angle), np.radians(light)
    pivot = _points(np.zeros_like(a), np.full_like(a, _PIVOT))
    bob = pivot + _ROD * _points(np.sin(a), -np.cos(a))
    source = pivot + _LIGHT_DISTANCE * _points(-np.sin(b), np.cos(b))
    half = np.maximum(length, 0) / 2
    ends = _points(position - half, np.zeros_like(a)), _points(position + half, np.zeros_like(a))
    pendulum = np.maximum(_covered(pivot, bob, _ROD_SIZE), _covered(bob, bob, _BOB_SIZE))
    drawn = (pendulum, _GREY), (_covered(source, source, _LIGHT_SIZE), _YELLOW), (_covered(*ends, _SHADOW_SIZE), _BLUE)
    image: np.ndarray = np.zeros((len(a), _SIDE, _SIDE, 3), dtype=np.float32)
    for part, colour in drawn:
        np.maximum(image, part[..., None] * np.array(colour, dtype=np.float32), out=image)
    return image


def _points(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([x, y], axis=-1)


def _covered(start: np.ndarray, end: np.ndarray, half_width: float) -> np.ndarray:
    """Share of every pixel that a segment with round ends covers, float32 `[sample, row, column]`."""
    scale = np.float32(_SIDE / _WIDTH)
    distance = _distance(start.astype(np.float32), end.astype(np.float32))
    return np.clip(scale * (np.float32(half_width) - distance) + np.float32(0.5), 0, 1)


def _distance(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """From the centre of every pixel to the segment of every sample, `[sample, row, column]`."""
    steps = (np.arange(_SIDE, dtype=np.float32) + np.float32(0.5)) * np.float32(_WIDTH / _SIDE)
    x = np.float32(_LEFT) + steps - start[:, None, None, 0]
    y = np.float32(_BOTTOM) + steps[::-1, None] - start[:, None, None, 1]
    along_x, along_y = np.moveaxis(end - start, 1, 0)[:, :, None, None]
    squared = np.maximum(along_x**2 + along_y**2, np.float32(1e-12))
    share = np.clip((x * along_x + y * along_y) / squared, 0, 1)
    distance: np.ndarray = np.hypot(x - share * along_x, y - share * along_y)
    return distance


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
