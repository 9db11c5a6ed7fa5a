"""Circles, the synthetic experiment of the paper: discs whose hue, radius and shift come from a decision tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from causalpima.examples.circle_truths import LEVELS, Truth, check_truth, circle_network, data_name, true_joint
from causalpima.examples.experiment import (
    bayes_accuracy,
    check_at_least,
    check_choice,
    check_seed,
    normal_log_likelihood,
)
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.config import Experiment, FitConfig, ModalityConfig

__all__ = [
    "EXPERIMENTS",
    "Spread",
    "bayes_ceiling",
    "check_circle_arguments",
    "circles",
    "draw_circles",
    "log_likelihood",
    "render_discs",
]

Spread = Literal["variance", "standard_deviation"]

_SIDE = 28
_COLOURS = np.array([[1, 0, 0], [0, 0, 1]], dtype=np.float32)
_COLOUR_WHEEL = np.array([0.0, 240.0])
_SPREADS = {"radius": 0.25, "shift": 0.5}


def circles(
    n_samples: int = 4096,
    seed: int = 0,
    spread: Spread = "variance",
    truth: Truth = "independent",
    rare: bool = False,
) -> MultimodalData:
    r"""Generate the circles of the paper (Figure `circle_tree`), or a variant with edges between the factors.

    With hue `h`, radius branch `r` and shift branch `s` in {0, 1} drawn from `true_joint(truth)`,

    $$\text{radius} \sim N(4 + 2h + r,\ 0.25), \qquad \text{shift} \sim N(-6 + 6r + 3s,\ 0.5),$$

    both in pixels. Every radius mean is at least eight standard deviations above zero, so none is clipped. The
    cells, the radii and the shifts have a random stream each: the first samples do not depend on `n_samples`, and
    neither the cells nor the standardised noise depend on `spread`.

    Args:
        n_samples: Number of images.
        seed: Seed of the generator, not negative.
        spread: How 0.25 and 0.5 are read. The paper means variances everywhere else.
        truth: Joint distribution of the factors: the paper's (`independent`), or one whose edges are in p(N).
        rare: The same edges with tables that leave 3 % of the samples to each of two cells.

    Returns:
        One modality `image`, float32 `[sample, 28, 28, 3]` in [0, 1]; the factors hue, radius and shift; as
        measurements the hue (degrees on the colour wheel), the radius and the shift (pixels); the Bayes ceiling.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_circle_arguments(n_samples, seed, spread, truth)
    network = circle_network(truth, rare)
    cell_stream, radius_stream, shift_stream = np.random.default_rng(seed).spawn(3)
    factors = network.draw(cell_stream.random(n_samples))
    noise = radius_stream.standard_normal(n_samples), shift_stream.standard_normal(n_samples)
    image, measurements = draw_circles(factors, noise, spread)
    return MultimodalData(
        name=data_name("circles", truth, rare),
        modalities={"image": image},
        present={"image": np.ones(n_samples, dtype=bool)},
        kinds={"image": "image"},
        factors=factors,
        factor_levels=LEVELS,
        measurements=measurements,
        bayes_ceiling=bayes_ceiling(factors, measurements["radius"], measurements["shift"], spread, network.joint),
        true_joint=network.joint,
        true_adjacency=network.adjacency,
    )


def draw_circles(
    factors: Mapping[str, np.ndarray], noise: tuple[np.ndarray, np.ndarray], spread: Spread = "variance"
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Images of given cells, and their hue, radius and shift.

    Args:
        factors: Codes of hue, radius branch and shift branch, `[sample]` each.
        noise: Standard normal numbers of radius and shift, `[sample]` each.
        spread: How 0.25 and 0.5 are read.
    """
    mean, scale = _means(*factors.values()), _scales(spread)
    radius, shift = (mean[name] + scale[name] * draw for name, draw in zip(scale, noise, strict=True))
    measurements = {"hue": _COLOUR_WHEEL[factors["hue"]], "radius": radius, "shift": shift}
    return render_discs(factors["hue"], radius, shift), measurements


def render_discs(hue: np.ndarray, radius: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Draw anti-aliased discs, red or blue on black (the paper states no background).

    A pixel whose centre is at distance d from the centre of the disc is covered by `clip(radius - d + 0.5, 0, 1)`,
    which is its covered area up to the curvature of the rim.

    Args:
        hue: 0 = red, 1 = blue, `[sample]`.
        radius: Radius in pixels, `[sample]`.
        shift: Horizontal offset of the centre from the centre of the image in pixels, right is positive, `[sample]`.

    Returns:
        Images, float32 `[sample, 28, 28, 3]` in [0, 1]; what leaves the frame is cut off.
    """
    offset = np.arange(_SIDE, dtype=np.float32) + np.float32(0.5 - _SIDE / 2)
    horizontal = offset - shift.astype(np.float32)[:, None]
    distance = np.sqrt(offset[:, None] ** 2 + horizontal[:, None, :] ** 2)
    coverage = np.clip(radius.astype(np.float32)[:, None, None] + np.float32(0.5) - distance, 0, 1)
    return coverage[..., None] * _COLOURS[hue][:, None, None, :]


def bayes_ceiling(
    factors: Mapping[str, np.ndarray],
    radius: np.ndarray,
    shift: np.ndarray,
    spread: Spread = "variance",
    joint: np.ndarray | None = None,
) -> float:
    """Share of samples whose cell is the most probable one given hue, radius and shift, by Bayes' rule.

    Nothing that sees only the images can be expected to do better: this is the ceiling of cluster accuracy.

    Args:
        factors: Codes of hue, radius branch and shift branch, `[sample]` each.
        radius: Radius in pixels, `[sample]`.
        shift: Shift in pixels, `[sample]`.
        spread: Reading of the spreads under which the samples were drawn.
        joint: p(hue, radius, shift) under which they were drawn, `[2, 2, 2]`, or one for each, `[sample, 2, 2, 2]`;
            default that of the paper.
    """
    prior = true_joint() if joint is None else joint
    return bayes_accuracy(np.log(prior) + log_likelihood(factors["hue"], radius, shift, spread), factors)


def log_likelihood(hue: np.ndarray, radius: np.ndarray, shift: np.ndarray, spread: Spread = "variance") -> np.ndarray:
    """log p(hue, radius, shift | cell) up to a constant, `[sample, 2, 2, 2]`; the image shows the hue without doubt."""
    mean, scale = _means(*np.indices((2, 2, 2))), _scales(spread)
    of_radius = normal_log_likelihood(radius, mean["radius"], scale["radius"])
    return _certain(hue) + of_radius + normal_log_likelihood(shift, mean["shift"], scale["shift"])


def _certain(hue: np.ndarray) -> np.ndarray:
    """0 where a cell has the hue, minus infinity elsewhere, `[sample, 2, 1, 1]`."""
    return np.where(hue[:, None] == np.arange(2), 0.0, -np.inf)[:, :, None, None]


def _means(hue: np.ndarray, radius: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
    return {"radius": 4.0 + 2.0 * hue + radius, "shift": -6.0 + 6.0 * radius + 3.0 * shift}


def _scales(spread: Spread) -> dict[str, float]:
    return {name: value**0.5 if spread == "variance" else value for name, value in _SPREADS.items()}


def check_circle_arguments(n_samples: int, seed: int, spread: str, truth: str) -> None:
    """Refuse arguments that are out of range.

    Raises:
        ValueError: The first that is, by name.
    """
    check_at_least("n_samples", n_samples, 1)
    check_seed(seed)
    check_choice("spread", spread, get_args(Spread))
    check_truth(truth)


_CONFIG = FitConfig(
    nodes={"N1": 2, "N2": 2, "N3": 2},
    modality={"image": ModalityConfig(standardise=False)},
)

EXPERIMENTS: Mapping[str, Experiment] = {
    "circles": Experiment(circles, _CONFIG),
    **{f"circles_{truth}": Experiment(circles, _CONFIG, {"truth": truth}) for truth in get_args(Truth)[1:]},
}
