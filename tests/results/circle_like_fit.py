"""Fits that look like those of circles, built by hand, for the tests of figures, table and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causalpima.inference.data.multimodal import Axis
from causalpima.inference.findings.arrays import (
    CurveArrays,
    FitArrays,
    GraphArrays,
    MixtureArrays,
    ModalityArrays,
    PhysicsArrays,
    PosteriorDraws,
)

__all__ = ["circle_like_fit", "circle_like_summary", "texts", "title", "with_law", "with_modality"]


def circle_like_fit(
    n_samples: int = 400,
    outcomes: Sequence[int] = (2, 2, 2),
    latent: int = 2,
    kinds: Mapping[str, str] | None = None,
    seed: int = 0,
    **changes: Any,
) -> FitArrays:
    """A fit with one well separated cluster per cell; `changes` replace fields of the result."""
    rng = np.random.default_rng(seed)
    n_cells = int(np.prod(outcomes))
    loc = _centres(n_cells, latent)
    scale = rng.uniform(0.12, 0.3, (n_cells, latent))
    covariance = np.einsum("kj,ji->kji", scale**2, np.eye(latent))
    cell = rng.choice(n_cells, n_samples, p=rng.dirichlet(np.full(n_cells, 20.0)))
    latent_loc = loc[cell] + scale[cell] * rng.standard_normal((n_samples, latent))
    distance = ((latent_loc[:, None] - loc) ** 2 / scale**2).sum(-1) / 2 + np.log(scale).sum(-1)
    responsibilities = np.exp(-distance + distance.min(1, keepdims=True))
    responsibilities /= responsibilities.sum(1, keepdims=True)
    codes = np.stack(np.unravel_index(cell, tuple(outcomes)))
    kinds = {"image": "image"} if kinds is None else kinds
    fields: dict[str, Any] = {
        "dataset": "circles",
        "seed": seed,
        "objective": "collapsed",
        "status": "ok",
        "responsibilities": responsibilities,
        "latent_loc": latent_loc,
        "latent_scale": np.full_like(latent_loc, 0.05),
        "graph": _graph(outcomes, rng),
        "mixture": MixtureArrays(loc, covariance, np.full(n_cells, 1 / n_cells), np.arange(n_cells)),
        "modalities": {name: _modality(kind, tuple(outcomes), rng) for name, kind in kinds.items()},
        "present": {name: np.ones(n_samples, dtype=bool) for name in kinds},
        "observed": {},
        "factors": dict(zip(("hue", "radius", "shift"), codes, strict=False)),
        "factor_levels": {"hue": ("red", "blue"), "radius": ("small", "large"), "shift": ("left", "right")},
        "measurements": {"radius": 4.0 + codes[0] + 0.3 * rng.standard_normal(n_samples)},
        "split": np.full(n_samples, "train"),
        "bayes_ceiling": 0.98,
        "history": _history(),
        "draws": _no_draws(latent, len(outcomes)),
    }
    return FitArrays(**(fields | changes))


def circle_like_summary(**changes: Any) -> dict[str, Any]:
    """A summary with the keys of `summary.json`; `changes` replace entries, None removes one."""
    nodes = ["N1", "N2", "N3"]
    strength = [[0.0, 0.93, 0.0], [0.0, 0.0, 0.2], [0.71, 0.0, 0.0]]
    information = [[0.0, 0.367, 0.014], [0.367, 0.0, 0.0], [0.014, 0.0, 0.0]]
    summary: dict[str, Any] = {
        "dataset": "circles",
        "seed": 3,
        "status": "ok",
        "n_samples": 4096,
        "modalities": {"image": {"shape": [28, 28, 3], "present": 4096}},
        "nodes": dict.fromkeys(nodes, 2),
        "objective": {"name": "collapsed", "value": 2e6, "per_sample": 4985.1234, "split": "validation"},
        "epochs": 45,
        "seconds": {"pretraining": 12.01, "training": 15.3, "total": 30.11},
        "clusters": {
            "n_requested": 8,
            "n_occupied": 8,
            "effective_number": 7.834,
            "sizes": [478, 589, 547, 485, 640, 448, 515, 394],
            "entropy": 0.05,
        },
        "graph": {
            "node_names": nodes,
            "edge_strength": strength,
            "mutual_information": information,
            "equivalent_labellings": 840,
        },
        "versions": {"python": "3.11"},
        "evaluation": {
            "cluster_accuracy": 0.9714,
            "nmi": 0.95,
            "ari": 0.96,
            "node_accuracy": {"hue": 0.63, "radius": 0.87},
            "assignment": {"hue": "N2", "radius": "N1"},
            "node_accuracy_mean": 0.75,
            "node_accuracy_worst": 0.63,
            "random_labelling_baseline": {"mean": 0.76, "worst": 0.645},
            "bayes_ceiling": 0.98,
            "split": "test",
            "n_samples": 812,
        },
        "output_dir": "runs/circles-001",
    }
    return {key: value for key, value in (summary | changes).items() if value is not None}


def with_modality(fit: FitArrays, name: str, **changes: Any) -> FitArrays:
    """The fit with fields of one modality replaced."""
    return replace(fit, modalities={**fit.modalities, name: replace(fit.modalities[name], **changes)})


def with_law(fit: FitArrays, name: str, n_parameters: int = 2) -> FitArrays:
    """The fit with physical parameters `p1`, `p2`, ... of a curve; the last one is not identified in cell 1."""
    decoded = fit.modalities[name].decoded
    shape = len(decoded), n_parameters
    value = 10.0 + np.arange(shape[0] * shape[1], dtype=float).reshape(shape)
    status = np.full(shape, "ok", dtype=object)
    status[1, -1] = "not identified"
    error = np.where(status == "ok", 0.25, np.nan)
    law = PhysicsArrays(
        names=tuple(f"p{i + 1}" for i in range(n_parameters)),
        units=("MPa", *[""] * (n_parameters - 1)),
        value=value,
        standard_error=error,
        lower=value - 2 * error,
        upper=value + 2 * error,
        status=status,
        effective_samples=np.full(shape[0], 7.5),
        curve=decoded + 0.01,
        curve_lower=decoded - 0.02,
        curve_upper=decoded + 0.04,
    )
    return with_modality(fit, name, physics=law)


def texts(figure: Figure) -> str:
    """Everything that is written in a figure, but for the labels of axes."""
    return "\n".join(text.get_text() for text in [*figure.texts, *(text for ax in figure.axes for text in ax.texts)])


def title(ax: Axes) -> str:
    """Title of a panel, wherever the style puts it."""
    return ax.get_title(loc="left") or ax.get_title()


def _centres(n_cells: int, latent: int) -> np.ndarray:
    grid = np.array(list(np.ndindex(*([int(np.ceil(n_cells ** (1 / min(latent, 2))))] * min(latent, 2)))), dtype=float)
    return 1.6 * np.pad(grid[:n_cells], ((0, 0), (0, latent - min(latent, 2))))


def _graph(outcomes: Sequence[int], rng: np.random.Generator) -> GraphArrays:
    n_nodes = len(outcomes)
    strength = np.triu(rng.uniform(0.0, 1.0, (n_nodes, n_nodes)) ** 0.7, 1)
    log_joint = np.log(rng.dirichlet(np.full(int(np.prod(outcomes)), 3.0))).reshape(outcomes)
    return GraphArrays(
        node_names=tuple(f"N{i + 1}" for i in range(n_nodes)),
        outcome_names=tuple(tuple(str(c) for c in range(count)) for count in outcomes),
        edge_strength=strength,
        adjacency=(strength > 0.5).astype(int),
        log_joint=log_joint,
        conditional_tables=np.zeros((n_nodes, *outcomes)),
        node_score=np.arange(n_nodes, dtype=float),
        edge_weight=np.abs(strength + strength.T),
        temperature=0.05,
    )


def _modality(kind: str, outcomes: tuple[int, ...], rng: np.random.Generator) -> ModalityArrays:
    codes = np.array(list(np.ndindex(*outcomes)))
    draw = {"image": _discs, "curve": _knees, "vector": _vectors}[kind]
    exemplars = draw(codes + 0.1 * rng.standard_normal(codes.shape))
    modality = ModalityArrays(kind, exemplars, draw(codes), variance_training=0.05, variance=0.002)  # type: ignore[arg-type]
    return _curves(modality, rng) if kind == "curve" else modality


def _curves(modality: ModalityArrays, rng: np.random.Generator) -> ModalityArrays:
    """Five measured curves of each cell, against strains that are not evenly spaced."""
    decoded = modality.decoded
    examples = decoded[:, None] + 0.05 * rng.standard_normal((len(decoded), 5, decoded.shape[1]))
    axis = Axis("strain", np.linspace(0.1, 1.0, decoded.shape[1]) ** 2, "%")
    return replace(modality, unit="MPa", axis=axis, curves=CurveArrays(examples, decoded - 0.1, decoded + 0.1))


def _discs(codes: np.ndarray) -> np.ndarray:
    code = np.pad(codes, ((0, 0), (0, max(0, 3 - codes.shape[1]))))
    offset = np.arange(28) - 13.5
    radius, shift = (
        (4 + 2 * code[:, 0] + code[:, 1])[:, None, None],
        (-6 + 6 * code[:, 1] + 3 * code[:, 2])[:, None, None],
    )
    disc = np.clip(radius + 0.5 - np.hypot(offset[None, :, None], offset[None, None, :] - shift), 0.0, 1.0)
    hue = np.stack([1 - codes[:, 0], 0 * codes[:, 0], codes[:, 0]], axis=1).clip(0, 1)
    return disc[..., None] * hue[:, None, None, :]


def _knees(codes: np.ndarray) -> np.ndarray:
    t, slope = np.linspace(0, 1, 50), 1 + codes.sum(axis=1, keepdims=True)
    return slope * np.minimum(t, 0.3 + 0.1 * codes[:, :1]) + 0.2 * t


def _vectors(codes: np.ndarray) -> np.ndarray:
    return codes @ np.arange(1.0, 1.0 + 5 * codes.shape[1]).reshape(codes.shape[1], 5)


def _history() -> list[dict[str, Any]]:
    records = []
    for epoch in range(1, 36):
        pretraining = epoch <= 20
        gain = 5000.0 - 6000.0 * np.exp(-epoch / 4) + 15 * np.sin(epoch)
        terms = {"image": gain + 8.0, "latent": -6.0 - np.exp(-epoch), "node": -2.0}
        records.append(
            {
                "epoch": epoch,
                "phase": "pretraining" if pretraining else "training",
                "seconds": 0.5,
                "objective": gain,
                "validation_objective": gain - 30.0,
                "terms": terms,
                "temperature": 1.0 if pretraining else 0.85 ** (epoch - 20),
                "node_noise": 0.0 if pretraining else 0.5 * 0.8 ** (epoch - 20),
                "kl_weight": min(1.0, epoch / 20),
                "effective_components": None if pretraining else 7.9 - 0.5 * np.exp(20 - epoch),
                "decoder_variance": {"image": max(0.05, 0.2 * np.exp(-epoch / 6))},
            }
        )
    return records


def _no_draws(latent: int, n_nodes: int) -> PosteriorDraws:
    return PosteriorDraws(
        samples=np.zeros(0, dtype=int),
        latent=np.zeros((0, 0, latent)),
        nodes=np.zeros((0, 0, n_nodes), dtype=int),
        log_weight=np.zeros((0, 0)),
        log_likelihood={},
        predictive_samples=np.zeros(0, dtype=int),
        predictive={},
        prior_latent=np.zeros((0, latent)),
        prior_nodes=np.zeros((0, n_nodes), dtype=int),
    )
