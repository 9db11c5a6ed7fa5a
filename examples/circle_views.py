"""Hue, radius and shift seen in up to three ways that overlap: a silhouette, a colour spectrum and a response curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from causalpima.examples.circle_truths import LEVELS, Truth, check_truth, circle_network, data_name
from causalpima.examples.circles import render_discs
from causalpima.examples.experiment import (
    bayes_accuracy,
    check_at_least,
    check_choice,
    check_seed,
    normal_log_likelihood,
)
from causalpima.inference.data.multimodal import Axis, ModalityKind, MultimodalData
from causalpima.inference.training.config import Experiment, FitConfig, ModalityConfig

__all__ = ["EXPERIMENTS", "MASKS", "TIME", "WAVELENGTH", "Views", "circles_views", "state_means", "view_log_likelihood"]

Views = Literal["overlapping", "nested", "two"]

MASKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "overlapping": {"silhouette": ("radius", "shift"), "spectrum": ("hue", "radius"), "response": ("hue", "shift")},
    "nested": {"silhouette": ("radius", "shift"), "spectrum": ("hue",), "response": ("shift",)},
    "two": {"silhouette": ("radius", "shift"), "spectrum": ("hue", "radius")},
}
"""Per choice of views, the nodes that each modality sees; all other nodes leave it as it is."""

WAVELENGTH = np.linspace(400.0, 700.0, 61)
"""Positions of the spectrum, nm."""
TIME = np.linspace(0.0, 5.0, 51)
"""Positions of the response, s."""

_NOISE = 0.05
_PEAK_WIDTH = 30.0


@dataclass(frozen=True)
class _View:
    """One modality: a state of two numbers, normal around a mean per visible cell, and how it is shown.

    Attributes:
        state: Names of the two numbers.
        means: Their means, `[level of the first node, level of the second, number]`; of one node alone, the diagonal.
        scales: Their standard deviations.
        render: From states `[sample, 2]` to values `[sample, *shape]`, without noise.
        kind: How it is shown.
        noise: Standard deviation of every element around that.
    """

    state: tuple[str, str]
    means: np.ndarray
    scales: tuple[float, float]
    render: Callable[[np.ndarray], np.ndarray]
    kind: ModalityKind
    noise: float


def _silhouette(state: np.ndarray) -> np.ndarray:
    red = np.zeros(len(state), dtype=int)
    return render_discs(red, state[:, 0], state[:, 1])[..., :1]


def _spectrum(state: np.ndarray) -> np.ndarray:
    peak, height = state[:, :1], state[:, 1:]
    return height * np.exp(-0.5 * ((WAVELENGTH - peak) / _PEAK_WIDTH) ** 2)


def _response(state: np.ndarray) -> np.ndarray:
    plateau, log_rate = state[:, :1], state[:, 1:]
    return plateau * -np.expm1(-np.exp(log_rate) * TIME)


# Every visible combination has a mean of its own, and effects do not add: what one node does depends on the other.
_VIEWS: Mapping[str, _View] = {
    "silhouette": _View(
        ("disc_radius", "disc_offset"),
        np.array([[[4.0, -3.5], [5.2, -1.0]], [[7.0, 4.0], [6.0, 1.0]]]),
        (0.5, 0.7),
        _silhouette,
        "image",
        0.0,
    ),
    "spectrum": _View(
        ("peak", "height"),
        np.array([[[620.0, 0.55], [575.0, 0.65]], [[455.0, 0.8], [500.0, 0.7]]]),
        (14.0, 0.06),
        _spectrum,
        "curve",
        _NOISE,
    ),
    "response": _View(
        ("plateau", "log_rate"),
        np.array([[[1.0, -0.3], [1.4, 0.2]], [[2.0, 0.1], [1.6, -0.5]]]),
        (0.15, 0.2),
        _response,
        "curve",
        _NOISE,
    ),
}


def circles_views(
    n_samples: int = 4096,
    seed: int = 0,
    truth: Truth = "independent",
    rare: bool = False,
    views: Views = "overlapping",
) -> MultimodalData:
    r"""Generate the factors of the circles, seen by modalities each of which sees some of the factors alone.

    A modality m that sees the nodes S_m has a state of two numbers, from which it is drawn:

    $$u_m \sim N(\mu_m[N_{S_m}],\ \operatorname{diag} s_m^2), \qquad X_m = f_m(u_m) + \epsilon.$$

    - `silhouette`: a white disc on black; u = (radius, horizontal offset) in pixels, no noise.
    - `spectrum`: a Gaussian peak 30 nm wide on 61 wavelengths; u = (position in nm, height), noise 0.05.
    - `response`: plateau (1 - exp(-rate t)) at 51 times; u = (plateau, log rate), noise 0.05.

    Means differ between all visible combinations of levels and do not add up from effects of single nodes. One modality
    alone confuses a few per cent of the combinations that it sees. States and noise of every modality have streams of
    their own: the first samples do not depend on `n_samples`, nor cells on the views.

    Args:
        n_samples: Number of samples.
        seed: Seed of the generator, not negative.
        truth: Joint distribution of the factors: the paper's (`independent`), or one whose edges are in p(N).
        rare: The same edges with tables that leave 3 % of the samples to each of two cells.
        views: Which nodes which modality sees. `overlapping`: silhouette radius and shift, spectrum hue and
            radius, response hue and shift; this fixes every node. `nested`: radius and shift, hue, shift; radius stays
            open. `two`: the first two of `overlapping`.

    Returns:
        Modalities `silhouette` `[sample, 28, 28, 1]` in [0, 1], `spectrum` `[sample, 61]` and, unless `two`, `response`
        `[sample, 51]`; factors hue, radius and shift; as measurements the states; the Bayes ceiling given these.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check(n_samples, seed, truth, views)
    network, mask = circle_network(truth, rare), MASKS[views]
    cell_stream, *streams = np.random.default_rng(seed).spawn(1 + 2 * len(_VIEWS))
    factors = network.draw(cell_stream.random(n_samples))
    pairs = dict(zip(_VIEWS, zip(streams[::2], streams[1::2], strict=True), strict=True))
    states = {name: _draw_states(name, mask[name], factors, pairs[name][0]) for name in mask}
    return MultimodalData(
        name=data_name("circles_views", truth, rare) + ("" if views == "overlapping" else f"_{views}"),
        modalities={name: _show(name, states[name], pairs[name][1]) for name in mask},
        present={name: np.ones(n_samples, dtype=bool) for name in mask},
        kinds={name: _VIEWS[name].kind for name in mask},
        factors=factors,
        factor_levels=LEVELS,
        measurements={label: u[:, i] for name, u in states.items() for i, label in enumerate(_VIEWS[name].state)},
        bayes_ceiling=bayes_accuracy(np.log(network.joint) + view_log_likelihood(states, mask), factors),
        axes={name: axis for name, axis in _AXES.items() if name in mask},
        true_joint=network.joint,
        true_adjacency=network.adjacency,
    )


def state_means(modality: str, nodes: tuple[str, ...]) -> np.ndarray:
    """Means of the state of a modality that sees these nodes, in every cell, `[2, 2, 2, number]`."""
    codes = dict(zip(LEVELS, np.indices((2, 2, 2)), strict=True))
    means: np.ndarray = _VIEWS[modality].means[codes[nodes[0]], codes[nodes[-1]]]
    return means


def view_log_likelihood(states: Mapping[str, np.ndarray], mask: Mapping[str, tuple[str, ...]]) -> np.ndarray:
    """log p(states | cell) up to a constant, `[sample, 2, 2, 2]`.

    Args:
        states: Per modality, its two numbers `[sample, 2]`.
        mask: Per modality, the nodes that it sees.
    """
    parts = [
        normal_log_likelihood(u[:, i], state_means(name, mask[name])[..., i], scale)
        for name, u in states.items()
        for i, scale in enumerate(_VIEWS[name].scales)
    ]
    return np.sum(parts, axis=0)


def _draw_states(
    name: str, nodes: tuple[str, ...], factors: Mapping[str, np.ndarray], generator: np.random.Generator
) -> np.ndarray:
    means = state_means(name, nodes)[tuple(factors.values())]
    return means + _VIEWS[name].scales * generator.standard_normal(means.shape)


def _show(name: str, state: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    clean = _VIEWS[name].render(state)
    noise = _VIEWS[name].noise
    return (clean + noise * generator.standard_normal(clean.shape) if noise else clean).astype(np.float32)


def _check(n_samples: int, seed: int, truth: str, views: str) -> None:
    check_at_least("n_samples", n_samples, 1)
    check_seed(seed)
    check_truth(truth)
    check_choice("views", views, get_args(Views))


_AXES = {"spectrum": Axis("wavelength", WAVELENGTH, "nm"), "response": Axis("time", TIME, "s")}
_MODALITY = {
    "silhouette": ModalityConfig(standardise=False),
    "spectrum": ModalityConfig(),
    "response": ModalityConfig(),
}


def _config(views: str) -> FitConfig:
    mask = MASKS[views]
    return FitConfig(nodes=dict.fromkeys(LEVELS, 2), modality={name: _MODALITY[name] for name in mask}, mask=mask)


EXPERIMENTS: Mapping[str, Experiment] = {
    "circles_views": Experiment(circles_views, _config("overlapping")),
    **{
        f"circles_views_{truth}": Experiment(circles_views, _config("overlapping"), {"truth": truth})
        for truth in get_args(Truth)[1:]
    },
    "circles_views_nested": Experiment(circles_views, _config("nested"), {"views": "nested"}),
    "circles_views_two": Experiment(circles_views, _config("two"), {"views": "two"}),
}
