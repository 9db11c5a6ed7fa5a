"""From the folder of a run to the programs: what its samples tell of the nodes, and the priors that are declared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import torch
import xarray as xr

from causalpima.inference.findings.meaning import is_named
from causalpima.inference.findings.posterior import check_groups, declared_knowledge, node_samples_of_file
from causalpima.inference.graphs.chains import CellEvidence, DagProgram, HodgePrior, HodgeProgram, Program
from causalpima.inference.graphs.dags import GraphKnowledge, all_dags
from causalpima.inference.graphs.posterior import NodeSamples, mixture_posterior
from causalpima.inference.graphs.scores import Score
from causalpima.models.graph.base import EdgeConstraints

__all__ = [
    "ProgramName",
    "RunGraph",
    "exact_edges",
    "prior_edges",
    "run_graph",
]


ProgramName = Literal["hodge", "dags"]

_MOST_LISTED = 4
_PRIOR_DRAWS = 4000


@dataclass(frozen=True)
class RunGraph:
    """What a finished run tells of its nodes.

    Attributes:
        samples: Log-likelihoods of the training samples.
        cells: Names of the cells.
        prior: Prior of (ξ, B, W): temperature and rate of the run.
        knowledge: What was declared of the graph.
        is_named: Whether every node has one meaning.
    """

    samples: NodeSamples
    cells: tuple[str, ...]
    prior: HodgePrior
    knowledge: GraphKnowledge
    is_named: bool

    @property
    def dags(self) -> np.ndarray:
        """The graphs that agree with what is known.

        Raises:
            ValueError: More nodes than graphs are listed of.
        """
        n_nodes = len(self.samples.nodes)
        if n_nodes > _MOST_LISTED:
            raise ValueError(
                f"program: expected hodge for a run of {n_nodes} nodes, got dags, which lists all graphs of up to "
                f"{_MOST_LISTED}; leave --program out"
            )
        dags = all_dags(n_nodes)
        return dags[self.knowledge.allows(dags)]

    def program(self, name: ProgramName, equivalent_sample_size: float) -> Program:
        """The program of that name on these samples."""
        evidence = CellEvidence(self.samples.log_likelihood, self.samples.weights)
        if name == "hodge":
            return self.hodge(evidence)
        return DagProgram.of(evidence, self.samples.outcomes, equivalent_sample_size, self.dags)

    def hodge(self, evidence: CellEvidence) -> HodgeProgram:
        """The paper's own parametrisation on this evidence, with what is known."""
        fixed = EdgeConstraints(*(torch.from_numpy(m) for m in (self.knowledge.forbidden, self.knowledge.required)))
        return HodgeProgram(evidence, self.samples.outcomes, self.prior, fixed)

    def prior_of(self, name: ProgramName, equivalent_sample_size: float) -> dict[str, Any]:
        """The declared prior as plain values."""
        if name == "hodge":
            return {
                "node_score": "Normal(0, 1)",
                "edge_weight": f"Exponential({self.prior.edge_rate:g})",
                "temperature": self.prior.temperature,
                "tables": f"Dirichlet({self.prior.concentration:g})",
            }
        return {"graph": "uniform over DAGs", "tables": "BDeu", "equivalent_sample_size": equivalent_sample_size}


def run_graph(posterior: xr.DataTree, summary: Mapping[str, Any]) -> RunGraph:
    """What the folder of a run tells; groups of replicates count once, and samples keep to their labels.

    Args:
        posterior: Its `posterior.nc`.
        summary: Its `summary.json`.

    Raises:
        ValueError: No training sample without intervention, or a file without the groups that the run had.
    """
    check_groups(posterior, summary)
    samples = node_samples_of_file(posterior)
    if samples is None:
        raise ValueError("run: expected training samples without intervention, got none; their nodes follow no p(N)")
    variational, attributes = posterior["variational"].dataset, json.loads(posterior.attrs["facts"])
    names = [map(str, variational[dim].to_numpy()) for dim in variational["log_joint"].dims]
    settings = ((attributes.get("config") or {}).get("graph")) or {}
    prior = HodgePrior(float(settings.get("temperature_end", 0.05)), float(settings.get("edge_rate") or 1.0))
    cells = tuple(",".join(cell) for cell in product(*names))
    return RunGraph(samples, cells, prior, declared_knowledge(attributes, samples.nodes), is_named(summary))


def exact_edges(graph: RunGraph, equivalent_sample_size: float) -> np.ndarray | None:
    """Edge probabilities of the exact posterior (BDeu, uniform over the graphs), `[L, L]`; None beyond four nodes."""
    if len(graph.samples.nodes) > _MOST_LISTED:
        return None
    score = Score("bdeu", equivalent_sample_size)
    return mixture_posterior(graph.samples, score, graph.knowledge).edge_probability


def prior_edges(graph: RunGraph, name: ProgramName, seed: int = 0) -> np.ndarray:
    """Edge probabilities before the data, `[L, L]`; of `hodge` the share of 4000 draws with E > 0.5."""
    if name == "dags":
        return np.asarray(graph.dags.mean(0))
    program = graph.hodge(CellEvidence(graph.samples.log_likelihood[:1]))
    n_nodes, generator = len(graph.samples.nodes), np.random.default_rng(seed)
    scores = torch.from_numpy(generator.normal(size=(_PRIOR_DRAWS, n_nodes)))
    weights = torch.from_numpy(
        generator.exponential(1 / graph.prior.edge_rate, size=(_PRIOR_DRAWS, n_nodes * (n_nodes - 1) // 2))
    )
    draws = zip(scores, weights, strict=True)
    strengths = [program.edge_strength({"node_score": xi, "edge_weight": b}) for xi, b in draws]
    return torch.stack(strengths).gt(0.5).double().mean(0).numpy()
