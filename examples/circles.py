"""Circles, the synthetic experiment of the paper: discs whose hue, radius and shift come from a decision tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.training.config import FitConfig, ModalityConfig
from inference.training.experiment import Experiment

__all__ = ["EXPERIMENTS", "Spread", "Truth", "bayes_ceiling", "circles", "render_discs", "true_adjacency", "true_joint"]

Spread = Literal["variance", "standard_deviation"]
Truth = Literal["independent", "chain", "fork", "collider", "edge"]

_SIDE = 28
_LEVELS = {"hue": ("red", "blue"), "radius": ("small", "large"), "shift": ("left", "right")}
_COLOURS = np.array([[1, 0, 0], [0, 0, 1]], dtype=np.float32)
_COLOUR_WHEEL = np.array([0.0, 240.0])
_SPREADS = {"radius": 0.25, "shift": 0.5}

# Per truth and factor: its parents and p(factor = 1 | parents), one axis per parent.
_TREES: Mapping[str, Mapping[str, tuple[tuple[str, ...], Any]]] = {
    "independent": {"hue": ((), 0.5), "radius": ((), 0.4), "shift": ((), 0.3)},
    "chain": {"hue": ((), 0.5), "radius": (("hue",), [0.3, 0.75]), "shift": (("radius",), [0.2, 0.7])},
    "fork": {"hue": (("radius",), [0.35, 0.8]), "radius": ((), 0.45), "shift": (("radius",), [0.75, 0.3])},
    "collider": {
        "hue": ((), 0.5),
        "radius": ((), 0.4),
        "shift": (("hue", "radius"), [[0.15, 0.5], [0.4, 0.85]]),
    },
    "edge": {"hue": ((), 0.6), "radius": (("hue",), [0.25, 0.7]), "shift": ((), 0.35)},
}


def circles(
    n_samples: int = 4096, seed: int = 0, spread: Spread = "variance", truth: Truth = "independent"
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

    Returns:
        One modality `image`, float32 `[sample, 28, 28, 3]` in [0, 1]; the factors hue, radius and shift; as
        measurements the hue (degrees on the colour wheel), the radius and the shift (pixels); the Bayes ceiling.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check(n_samples, seed, spread, truth)
    cell_stream, radius_stream, shift_stream = np.random.default_rng(seed).spawn(3)
    factors = _draw_factors(cell_stream.random(n_samples), truth)
    mean, scale = _means(*factors.values()), _scales(spread)
    radius = mean["radius"] + scale["radius"] * radius_stream.standard_normal(n_samples)
    shift = mean["shift"] + scale["shift"] * shift_stream.standard_normal(n_samples)
    return MultimodalData(
        name="circles" if truth == "independent" else f"circles_{truth}",
        modalities={"image": render_discs(factors["hue"], radius, shift)},
        present={"image": np.ones(n_samples, dtype=bool)},
        kinds={"image": "image"},
        factors=factors,
        factor_levels=_LEVELS,
        measurements={"hue": _COLOUR_WHEEL[factors["hue"]], "radius": radius, "shift": shift},
        bayes_ceiling=bayes_ceiling(factors, radius, shift, spread, truth),
    )


def true_joint(truth: Truth = "independent") -> np.ndarray:
    """p(hue, radius branch, shift branch) of a truth, `[2, 2, 2]`; `independent` is the tree of the paper."""
    return np.prod(np.broadcast_arrays(*(_conditional(truth, child) for child in _LEVELS)), axis=0)


def true_adjacency(truth: Truth = "independent") -> np.ndarray:
    """The DAG of a truth over hue, radius and shift: `[3, 3]` of 0 and 1, row = cause, column = effect."""
    return np.array([[int(cause in _TREES[truth][effect][0]) for effect in _LEVELS] for cause in _LEVELS])


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
    truth: Truth = "independent",
) -> float:
    """Share of samples whose cell is the most probable one given hue, radius and shift, by Bayes' rule.

    Nothing that sees only the images can be expected to do better: this is the ceiling of cluster accuracy.

    Args:
        factors: Codes of hue, radius branch and shift branch, `[sample]` each.
        radius: Radius in pixels, `[sample]`.
        shift: Shift in pixels, `[sample]`.
        spread: Reading of the spreads under which the samples were drawn.
        truth: Joint distribution under which the samples were drawn.
    """
    hue, small_or_large, left_or_right = (factors[name] for name in _LEVELS)
    radius_branch, shift_branch = np.indices((2, 2))
    mean, scale = _means(hue[:, None, None], radius_branch, shift_branch), _scales(spread)
    radius_error = (radius[:, None, None] - mean["radius"]) / scale["radius"]
    shift_error = (shift[:, None, None] - mean["shift"]) / scale["shift"]
    log_posterior = np.log(true_joint(truth))[hue] - 0.5 * (radius_error**2 + shift_error**2)
    best = log_posterior.reshape(len(hue), 4).argmax(axis=1)
    return float(np.mean(best == 2 * small_or_large + left_or_right))


def _means(hue: np.ndarray, radius: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
    return {"radius": 4.0 + 2.0 * hue + radius, "shift": -6.0 + 6.0 * radius + 3.0 * shift}


def _scales(spread: Spread) -> dict[str, float]:
    return {name: value**0.5 if spread == "variance" else value for name, value in _SPREADS.items()}


def _conditional(truth: Truth, child: str) -> np.ndarray:
    """p(child | parents) with one axis per factor; size 1 along the factors that it does not depend on."""
    parents, probability = _TREES[truth][child]
    one = np.reshape(probability, [2 if name in parents else 1 for name in _LEVELS])
    return np.concatenate([1.0 - one, one], axis=list(_LEVELS).index(child))


def _draw_factors(uniform: np.ndarray, truth: Truth) -> dict[str, np.ndarray]:
    edges = np.cumsum(true_joint(truth))[:-1]
    codes = np.unravel_index(np.searchsorted(edges, uniform, side="right"), (2, 2, 2))
    return dict(zip(_LEVELS, codes, strict=True))


def _check(n_samples: int, seed: int, spread: str, truth: str) -> None:
    if n_samples < 1:
        raise ValueError(f"n_samples: expected at least 1, got {n_samples}; ask for one image or more")
    if seed < 0:
        raise ValueError(f"seed: expected a non-negative integer, got {seed}; choose 0 or more")
    for name, value, choices in (("spread", spread, get_args(Spread)), ("truth", truth, get_args(Truth))):
        if value not in choices:
            raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}; choose one of these")


_CONFIG = FitConfig(
    nodes={"N1": 2, "N2": 2, "N3": 2},
    modality={"image": ModalityConfig(standardise=False)},
)

EXPERIMENTS: Mapping[str, Experiment] = {
    "circles": Experiment(circles, _CONFIG),
    **{f"circles_{truth}": Experiment(circles, _CONFIG, {"truth": truth}) for truth in get_args(Truth)[1:]},
}
