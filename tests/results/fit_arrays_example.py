"""A small fit built by hand, with every asymmetry that an export could get wrong; plain NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

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

__all__ = ["PRESENT", "example_fit"]

_N, _S, _P, _D, _J = 11, 7, 4, 30, 3
_SHAPES = {"picture": (4, 5, 3), "stress µ": (6,)}
PRESENT = np.array([1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1], dtype=bool)
"""Which of the 11 samples have the modality `stress µ`; all have `picture`."""


def example_fit(**changes: Any) -> FitArrays:
    """A fit of 11 samples, nodes of 2 and 3 outcomes, 8 components for 6 cells; `changes` replace fields."""
    rng = np.random.default_rng(4)
    log_joint = np.log(rng.dirichlet(np.full(6, 3.0)).reshape(2, 3))
    fit = FitArrays(
        dataset="example",
        seed=12,
        objective="meanfield",
        status="ok",
        responsibilities=rng.dirichlet(np.ones(6), _N),
        latent_loc=rng.normal(size=(_N, _J)).astype(np.float32),
        latent_scale=rng.uniform(0.1, 1.0, (_N, _J)).astype(np.float32),
        graph=_graph(log_joint),
        mixture=_mixture(rng, log_joint),
        modalities={"picture": _picture(rng), "stress µ": _curve(rng)},
        present={"picture": np.ones(_N, dtype=bool), "stress µ": PRESENT},
        observed={},
        factors={"hue": rng.integers(0, 2, _N), "shape": rng.integers(0, 3, _N)},
        factor_levels={"hue": ("red", "blau-grün"), "shape": ("disc", "ring", "box")},
        measurements={"radius": rng.uniform(1, 2, _N)},
        split=np.array(["train"] * 6 + ["validation"] * 2 + ["test"] * 3),
        bayes_ceiling=None,
        history=_history(),
        draws=_draws(rng),
        attributes={"configuration": {"nodes": [2, 3], "path": None, "fast": True}},
        measured_share={"stress µ": np.where(PRESENT, 5 / 6, 0.0).astype(np.float32)},
        sample_names=np.array([f"Probe µ{i}" for i in range(_N)]),
    )
    fit = replace(fit, observed={name: _observed(rng, fit, name) for name in _SHAPES})
    return replace(fit, **changes)


def _graph(log_joint: np.ndarray) -> GraphArrays:
    joint = np.exp(log_joint)
    kind = joint.sum(1)
    return GraphArrays(
        node_names=("type", "response"),
        outcome_names=(("soft", "härter"), ("low", "mid", "high")),
        edge_strength=np.array([[0.0, 0.8], [0.0, 0.0]]),
        adjacency=np.array([[0, 1], [0, 0]]),
        log_joint=log_joint,
        conditional_tables=np.stack([np.broadcast_to(kind[:, None], (2, 3)), joint / kind[:, None]]),
        node_score=np.array([-0.5, 0.7]),
        edge_weight=np.array([[0.0, 1.5], [1.5, 0.0]]),
        temperature=0.25,
    )


def _mixture(rng: np.random.Generator, log_joint: np.ndarray) -> MixtureArrays:
    cell = np.array([0, 1, 2, 3, 4, 5, 5, 0])
    share = np.array([0.3, 1, 1, 1, 1, 0.6, 0.4, 0.7])
    root = rng.normal(size=(8, _J, _J))
    covariance = root @ root.transpose(0, 2, 1) + np.eye(_J)
    return MixtureArrays(rng.normal(size=(8, _J)), covariance, np.exp(log_joint).ravel()[cell] * share, cell)


def _picture(rng: np.random.Generator) -> ModalityArrays:
    exemplars = rng.normal(size=(6, 4, 5, 3))
    exemplars[4] = np.nan
    return ModalityArrays("image", exemplars, rng.normal(size=(6, 4, 5, 3)), None, None, likelihood="student_t")


def _curve(rng: np.random.Generator) -> ModalityArrays:
    decoded = rng.normal(size=(6, 6))
    return ModalityArrays(
        "curve",
        exemplars=np.where(np.arange(6) == 2, np.nan, rng.normal(size=(6, 6))),
        decoded=decoded,
        variance_training=0.05,
        variance=0.031,
        unit="MPa",
        axis=Axis("strain", np.array([0.0, 0.5, 1.5, 3.0, 3.5, 8.0]), "%"),
        transform="asinh",
        physics=_physics(rng),
        missing_elements=1 / 6,
        knee=0.5,
        curves=CurveArrays(rng.normal(size=(6, 3, 6)), decoded - 1.0, decoded + 1.0),
    )


def _physics(rng: np.random.Generator) -> PhysicsArrays:
    """A modulus and an offset without a unit, the latter not determined in cell 3."""
    status = np.full((6, 2), "ok", dtype=object)
    status[3, 1], status[5] = "at bound", "too few samples"
    value, error = rng.normal(20.0, 1.0, size=(6, 2)), np.where(status == "ok", rng.uniform(0.1, 0.3, (6, 2)), np.nan)
    law = rng.normal(size=(6, 6))
    return PhysicsArrays(
        names=("modulus", "offset"),
        units=("MPa", ""),
        value=value,
        standard_error=error,
        lower=value - 2 * error,
        upper=value + 2 * error,
        status=status,
        effective_samples=np.array([4.0, 3.5, 7.25, 2.0, 5.0, 1.0]),
        curve=law,
        curve_lower=law - 0.25,
        curve_upper=law + 0.25,
    )


def _observed(rng: np.random.Generator, fit: FitArrays, name: str) -> np.ndarray:
    values = rng.normal(size=(_P, *_SHAPES[name])).astype(np.float32)
    values[~fit.present[name][fit.draws.predictive_samples]] = np.nan
    if name in fit.measured_share:
        values[:, 2] = np.nan
    return values


def _draws(rng: np.random.Generator) -> PosteriorDraws:
    samples = np.array([1, 2, 3, 5, 8, 9, 10])
    likelihood = {name: rng.normal(-3.0, 1.0, (_D, _S)) for name in _SHAPES}
    likelihood["stress µ"][:, ~PRESENT[samples]] = np.nan
    return PosteriorDraws(
        samples=samples,
        latent=rng.normal(size=(_D, _S, _J)).astype(np.float32),
        nodes=np.stack([rng.integers(0, c, (_D, _S)) for c in (2, 3)], axis=-1),
        log_weight=rng.normal(-5.0, 1.0, (_D, _S)),
        log_likelihood=likelihood,
        predictive_samples=samples[[0, 1, 3, 6]],
        predictive={name: rng.normal(size=(_D, _P, *shape)) for name, shape in _SHAPES.items()},
        prior_latent=rng.normal(size=(_D, _J)).astype(np.float32),
        prior_nodes=np.stack([rng.integers(0, c, _D) for c in (2, 3)], axis=-1),
    )


def _history() -> list[dict[str, Any]]:
    first = {"epoch": 1, "phase": "pretraining", "seconds": 0.5, "objective": None, "terms": {"picture": -2.0}}
    more = {"temperature": 0.5, "decoder_variance": {"picture": 0.1, "stress µ": 0.2}}
    return [first, *({"epoch": e, "phase": "training", "seconds": 0.25, "objective": -9.0 + e} | more for e in (2, 3))]
