"""Circles under interventions: an observational environment, and one per factor that was set or disturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from causalpima.examples.circle_truths import LEVELS, Truth, circle_network, data_name
from causalpima.examples.circles import Spread, bayes_ceiling, check_circle_arguments, draw_circles
from causalpima.examples.discrete_network import DiscreteNetwork
from causalpima.examples.experiment import check_at_least, check_choice
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.config import Experiment, FitConfig, ModalityConfig

__all__ = ["DO_PROBABILITY", "EXPERIMENTS", "SOFT_SHIFT", "Kind", "circles_environments", "environment_network"]

Kind = Literal["do", "soft"]

DO_PROBABILITY = 0.8
"""p(target = 1) in a do-environment; far from every marginal of every truth, so that roots, too, can be told apart."""
SOFT_SHIFT = 1.5
"""What a soft intervention adds to the log-odds of the target, whatever its parents."""


def circles_environments(
    n_samples: int = 4096,
    n_per_environment: int | None = None,
    seed: int = 0,
    spread: Spread = "variance",
    truth: Truth = "independent",
    rare: bool = False,
    kind: Kind = "do",
    targets: tuple[str, ...] = ("hue", "radius", "shift"),
) -> MultimodalData:
    """Generate circles in an observational environment, then in one environment per target; images are as ever.

    In the environment of a target one table is another one, and all the rest is as it was (`environment_network`). The
    observational samples are those of `circles` with the same seed; every environment has streams of its own.

    Args:
        n_samples: Number of observational images.
        n_per_environment: Number of images in each of the other environments; None: half of `n_samples`.
        seed: Seed of the generator, not negative.
        spread: How the spreads 0.25 and 0.5 of radius and shift are read; see `circles`.
        truth: Joint distribution of the factors where nothing is intervened upon.
        rare: The same edges with tables that leave 3 % of the samples to each of two cells.
        kind: `do`: the target is 1 with probability 0.8, whatever its parents. `soft`: its log-odds rise by 1.5, and it
            still listens to its parents.
        targets: Factors that are intervened upon, one at a time.

    Returns:
        As from `circles`, with the environment of every sample, its names and targets. `true_joint` is that of the
        observational environment; the Bayes ceiling is that of one who knows the environment of every sample.

    Raises:
        ValueError: If an argument is out of range.
    """
    check_circle_arguments(n_samples, seed, spread, truth)
    each = max(1, n_samples // 2) if n_per_environment is None else n_per_environment
    _check(each, kind, targets)
    observational = circle_network(truth, rare)
    networks = [observational, *(environment_network(observational, target, kind) for target in targets)]
    sizes = [n_samples, *[each] * len(targets)]
    environment = np.repeat(np.arange(len(networks)), sizes)
    factors, noise = _draw(networks, sizes, np.random.default_rng(seed))
    image, measurements = draw_circles(factors, noise, spread)
    priors = np.stack([network.joint for network in networks])[environment]
    return MultimodalData(
        name=data_name(f"circles_environments_{kind}" if kind != "do" else "circles_environments", truth, rare),
        modalities={"image": image},
        present={"image": np.ones(len(environment), dtype=bool)},
        kinds={"image": "image"},
        factors=factors,
        factor_levels=LEVELS,
        measurements=measurements,
        bayes_ceiling=bayes_ceiling(factors, measurements["radius"], measurements["shift"], spread, priors),
        environment=environment,
        environment_names=("observational", *(f"{kind}({target})" for target in targets)),
        environment_targets=((), *((target,) for target in targets)),
        true_joint=observational.joint,
        true_adjacency=observational.adjacency,
    )


def environment_network(network: DiscreteNetwork, target: str, kind: Kind) -> DiscreteNetwork:
    r"""The network in the environment of a target with two levels.

    `do`: p(target = 1) = 0.8 whatever its parents. `soft`: with p = p(target = 1 | parents) as it was,

    $$p' = p / (p + (1 - p) e^{-1.5}),$$

    so that log-odds rise by 1.5 for every configuration of the parents, and the graph stays.
    """
    if kind == "do":
        return network.intervened(target, np.array([1 - DO_PROBABILITY, DO_PROBABILITY]))
    raised = network.tables[target] * np.exp([0.0, SOFT_SHIFT])
    return network.with_table(target, raised / raised.sum(-1, keepdims=True))


def _draw(
    networks: Sequence[DiscreteNetwork], sizes: Sequence[int], generator: np.random.Generator
) -> tuple[dict[str, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Codes of the factors and the noise of radius and shift, one environment after the other."""
    cells, radii, shifts = zip(*(generator.spawn(3) for _ in networks), strict=True)
    drawn = [network.draw(cell.random(n)) for network, cell, n in zip(networks, cells, sizes, strict=True)]
    radius_noise, shift_noise = (
        np.concatenate([stream.standard_normal(n) for stream, n in zip(streams, sizes, strict=True)])
        for streams in (radii, shifts)
    )
    return {name: np.concatenate([codes[name] for codes in drawn]) for name in LEVELS}, (radius_noise, shift_noise)


def _check(n_per_environment: int, kind: str, targets: Sequence[str]) -> None:
    check_at_least("n_per_environment", n_per_environment, 1)
    check_choice("kind", kind, get_args(Kind))
    for target in targets:
        check_choice("targets", target, list(LEVELS))
    if len(set(targets)) != len(targets):
        raise ValueError(f"targets: expected every factor once, got {', '.join(targets)}; leave one of them out")


_CONFIG = FitConfig(nodes={"N1": 2, "N2": 2, "N3": 2}, modality={"image": ModalityConfig(standardise=False)})

EXPERIMENTS: Mapping[str, Experiment] = {
    "circles_environments": Experiment(circles_environments, _CONFIG),
    **{
        f"circles_environments_{truth}": Experiment(circles_environments, _CONFIG, {"truth": truth})
        for truth in get_args(Truth)[1:]
    },
}
