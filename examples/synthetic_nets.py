"""Networks of the literature as latent graphs: every node emits a block of pixels and a coefficient of a curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from causalpima.examples.discrete_network import DiscreteNetwork
from causalpima.examples.experiment import (
    bayes_accuracy,
    check_at_least,
    check_choice,
    check_seed,
    normal_log_likelihood,
)
from causalpima.examples.literature_nets import NETS, Net, with_random_tables
from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.training.config import Experiment, FitConfig, ModalityConfig, ModelConfig

__all__ = ["EXPERIMENTS", "SCATTER", "Emission", "Tables", "curve_basis", "net_of", "synthetic_nets"]

Tables = Literal["random", "own"]
Emission = Literal["blocks", "mixed"]

SCATTER = 0.22
"""Standard deviation of what a node emits around its level; levels are 1 apart."""

_BLOCK = 5
_PIXEL_NOISE = 0.03
_CURVE_NOISE = 0.05
_POINTS_PER_NODE = 12
_DARK, _STEP = 0.15, 0.35


def synthetic_nets(
    n_samples: int = 4096,
    seed: int = 0,
    net: Net = "cancer",
    tables: Tables = "random",
    emission: Emission = "blocks",
    table_seed: int = 0,
) -> MultimodalData:
    r"""Generate nodes from a network of the literature, and an image and a curve from the nodes.

    A node of level c (0, 1, ...) emits into each modality m a number of its own,

    $$u_{ml} \sim N(c_l,\ 0.22^2), \qquad v_m = Q_m u_m,$$

    with Q = 1 (`blocks`), or a random rotation, by which every number depends on every node (`mixed`). Block l of the
    image, 5 by 5 pixels, is 0.15 + 0.35 v_l; the curve is the sum of v_l times the l-th function of `curve_basis`; both
    with white noise (0.03, 0.05). Cells, emissions and noise have streams of their own: the first samples do not depend
    on `n_samples`.

    Args:
        n_samples: Number of samples.
        seed: Seed of the samples, not negative.
        net: Network: `earthquake`, `cancer` (5 nodes), `survey` (6) or `asia` (8: 256 cells).
        tables: `own`: those of the literature, with states so rare that thousands of samples hardly show them.
            `random`: the same graph with tables under which every edge shows (`with_random_tables`).
        emission: One block and one coefficient per node, or all `mixed`, which is harder.
        table_seed: Seed of random tables and rotations.

    Returns:
        Modalities `image` (blocks row by row; in [0, 1] but for tails, unless mixed) and `curve`; the nodes as factors;
        as measurements `image_NODE` and `curve_NODE`, the numbers u; the Bayes ceiling given these.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check(n_samples, seed, net, tables, emission, table_seed)
    network = net_of(net, tables, table_seed)
    cells, *streams = np.random.default_rng(seed).spawn(5)
    factors = network.draw(cells.random(n_samples))
    codes = np.stack(list(factors.values()), axis=1)
    emitted = [codes + SCATTER * stream.standard_normal(codes.shape) for stream in streams[:2]]
    mixed = [
        u @ rotation.T
        for u, rotation in zip(emitted, _rotations(len(network.levels), emission, table_seed), strict=True)
    ]
    modalities = {"image": _image(mixed[0], streams[2]), "curve": _curve(mixed[1], streams[3])}
    named = [
        (f"{name}_{node}", u[:, i])
        for name, u in zip(modalities, emitted, strict=True)
        for i, node in enumerate(factors)
    ]
    return MultimodalData(
        name=_name(net, tables, emission),
        modalities=modalities,
        present={name: np.ones(n_samples, dtype=bool) for name in modalities},
        kinds={"image": "image", "curve": "curve"},
        factors=factors,
        factor_levels=network.levels,
        measurements=dict(named),
        bayes_ceiling=bayes_accuracy(_log_posterior(network, emitted), factors),
        axes={"curve": Axis("position", _positions(len(network.levels)))},
        true_joint=network.joint,
        true_adjacency=network.adjacency,
    )


def net_of(net: Net, tables: Tables = "random", table_seed: int = 0) -> DiscreteNetwork:
    """The network with its own tables, or with random ones."""
    return NETS[net] if tables == "own" else with_random_tables(NETS[net], table_seed)


def curve_basis(n_nodes: int) -> np.ndarray:
    """One bump per node, `[node, position]`: exp(-(x - l)² / (2 · 0.4²)) at positions x, 12 of them per node."""
    return np.exp(-0.5 * ((_positions(n_nodes) - np.arange(n_nodes)[:, None]) / 0.4) ** 2)


def _positions(n_nodes: int) -> np.ndarray:
    return np.linspace(-0.5, n_nodes - 0.5, _POINTS_PER_NODE * n_nodes)


def _image(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """`[sample, height, width, 1]`: blocks row by row, black where the last row has too few."""
    n_samples, n_nodes = values.shape
    columns = math.ceil(math.sqrt(n_nodes))
    rows = math.ceil(n_nodes / columns)
    blocks = np.zeros((n_samples, rows * columns))
    blocks[:, :n_nodes] = _DARK + _STEP * values
    pixels = blocks.reshape(n_samples, rows, columns).repeat(_BLOCK, axis=1).repeat(_BLOCK, axis=2)
    return (pixels + _PIXEL_NOISE * generator.standard_normal(pixels.shape)).astype(np.float32)[..., None]


def _curve(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    clean = values @ curve_basis(values.shape[1])
    return (clean + _CURVE_NOISE * generator.standard_normal(clean.shape)).astype(np.float32)


def _rotations(n_nodes: int, emission: Emission, seed: int) -> list[np.ndarray]:
    """Of the image and of the curve, `[node, node]` each."""
    if emission == "blocks":
        return [np.eye(n_nodes)] * 2
    streams = np.random.default_rng((seed, 1)).spawn(2)
    return [np.linalg.qr(stream.standard_normal((n_nodes, n_nodes)))[0] for stream in streams]


def _log_posterior(network: DiscreteNetwork, emitted: list[np.ndarray]) -> np.ndarray:
    """Both rotations are known and lose nothing, so that the numbers u are all that shows the cell."""
    levels = np.indices(network.shape)
    both = np.mean(emitted, axis=0)  # sufficient: two draws around the same mean
    parts = [normal_log_likelihood(both[:, i], level, SCATTER / math.sqrt(2)) for i, level in enumerate(levels)]
    with np.errstate(divide="ignore"):
        return np.log(network.joint) + sum(parts, np.zeros(1))


def _name(net: str, tables: str, emission: str) -> str:
    others = [word for word in (tables, emission) if word not in ("random", "blocks")]
    return "_".join(["synthetic_nets", net, *others])


def _check(n_samples: int, seed: int, net: str, tables: str, emission: str, table_seed: int) -> None:
    check_at_least("n_samples", n_samples, 1)
    check_seed(seed)
    check_at_least("table_seed", table_seed, 0)
    for name, value, choices in (("net", net, Net), ("tables", tables, Tables), ("emission", emission, Emission)):
        check_choice(name, value, get_args(choices))


def _config(net: Net) -> FitConfig:
    nodes = {name: len(levels) for name, levels in NETS[net].levels.items()}
    return FitConfig(
        nodes=nodes,
        model=ModelConfig(latent_dim=len(nodes)),
        modality={"image": ModalityConfig(), "curve": ModalityConfig()},
    )


EXPERIMENTS: Mapping[str, Experiment] = {
    f"synthetic_nets_{net}": Experiment(synthetic_nets, _config(net), {"net": net}) for net in get_args(Net)
}
