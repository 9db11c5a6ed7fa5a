"""A fit that was never trained: a chain of three named nodes, clusters that overlap, and linear decoders."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from causalpima.guides.encoders import Encoder
from causalpima.guides.guide import Guide
from causalpima.inference.analyses.scenarios import QuerySource
from causalpima.inference.training.config import DecoderConfig, FitConfig, ModalityConfig, ModelConfig
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.prepared_run import RunDescription
from causalpima.models.batch import Modality, Standardisation
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

__all__ = ["CPDAG", "NAMES", "NODES", "chain_joint", "linear_source", "summary_of"]

NODES = ("alloy", "heat", "hard")
NAMES = {"alloy": ("brass", "steel"), "heat": ("no", "yes"), "hard": ("soft", "hard")}
CPDAG = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
"""alloy - heat - hard: the class of the chain."""

SCALE = 0.5
SHAPES = {"image": (3, 3, 1), "curve": (4,), "hardness": (1,)}
NOISE = 0.3


def chain_joint() -> np.ndarray:
    """p(alloy) p(heat | alloy) p(hard | heat)."""
    alloy = np.array([0.6, 0.4])
    heat = np.array([[0.8, 0.2], [0.3, 0.7]])
    hard = np.array([[0.9, 0.1], [0.25, 0.75]])
    return alloy[:, None, None] * heat[:, :, None] * hard[None]


def summary_of(**changes: Any) -> dict[str, Any]:
    """What the summary of a run with labels says."""
    graph = {
        "node_names": list(NODES),
        "equivalence_class": {"cpdag": CPDAG, "node_names": list(NODES), "gap_nats": 12.0, "near": []},
    }
    summary = {
        "nodes": dict.fromkeys(NODES, 2),
        "graph": graph,
        "labelling": {"source": "labels", "named_nodes": list(NODES), "details": {"n_labelled": 50}},
        "identifiability": {"is_named": True, "identified_nodes": list(NODES), "suggestions": []},
    }
    return {**summary, **changes}


def weight_of(name: str) -> np.ndarray:
    """The linear decoder of a modality, `[elements, 3]`."""
    size = int(np.prod(SHAPES[name]))
    return np.random.default_rng(list(SHAPES).index(name)).normal(0, 0.4, (size, 3))


def linear_source(n_samples: int = 2000, seed: int = 0, **changes: Any) -> QuerySource:
    """Samples of the chain, with q(N|X) = p(N|Z) and q(Z|X) at the true Z; `changes` are fields of the source."""
    rng, joint = np.random.default_rng(seed), chain_joint()
    fitted = _fitted()
    loc = fitted.model.mixture.component_loc.numpy()
    cell = rng.choice(8, n_samples, p=joint.reshape(-1))
    latent = loc[cell] + SCALE * rng.standard_normal((n_samples, 3))
    density = -0.5 * np.square((latent[:, None] - loc) / SCALE).sum(-1) + np.log(joint.reshape(-1))
    responsibilities = np.exp(density - density.max(1, keepdims=True))
    fields: dict[str, Any] = {
        "fitted": fitted,
        "summary": summary_of(),
        "outcomes": NAMES,
        "responsibilities": responsibilities / responsibilities.sum(1, keepdims=True),
        "prior": joint.reshape(-1),
        "is_training": np.ones(n_samples, dtype=bool),
        "environment": None,
        "groups": None,
        "labels": None,
        "latent": latent,
        "sample_names": tuple(f"S{number}" for number in range(n_samples)),
    }
    return QuerySource(**{**fields, **changes})


def _fitted() -> FittedRun:
    modalities = {
        "image": Modality("image", torch.Size(SHAPES["image"]), "image"),
        "curve": Modality(
            "curve",
            torch.Size(SHAPES["curve"]),
            "curve",
            torch.linspace(0.0, 3.0, 4),
            "strain",
            "%",
            "MPa",
            Standardisation(1.0, 0.5, "log"),
        ),
        "hardness": Modality(
            "hardness", torch.Size([1]), "vector", unit="HV", standardisation=Standardisation(200.0, 20.0)
        ),
    }
    settings = dict.fromkeys(modalities, ModalityConfig(decoder=DecoderConfig(likelihood="normal")))
    config = FitConfig(nodes=dict.fromkeys(NODES, 2), model=ModelConfig(latent_dim=3), modality=settings)
    mixture = GaussianMixture(8, 3)
    corners = torch.tensor(list(np.ndindex(2, 2, 2))).to(torch.get_default_dtype())
    mixture.replace(2 * corners - 1, torch.full((8, 3), SCALE), torch.arange(8), torch.zeros(8))
    decoders = {name: _decoder(name) for name in modalities}
    model = CausalPIMA(HodgeGraph((2, 2, 2)), mixture, decoders, NODES)
    guide = Guide({name: Encoder(nn.Linear(int(np.prod(SHAPES[name])), 6)) for name in modalities})
    description = RunDescription(config, modalities, {}, {}, "linear", outcome_names=tuple(NAMES.values()))
    return FittedRun(model.eval().requires_grad_(False), guide.eval(), description)


def _decoder(name: str) -> GaussianDecoder:
    weight = torch.from_numpy(weight_of(name)).to(torch.get_default_dtype())
    head = nn.Linear(3, len(weight))
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.zero_()
    return GaussianDecoder(nn.Identity(), head, SHAPES[name], DecoderVariance("fixed", NOISE**2))
