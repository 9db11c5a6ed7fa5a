"""`summary.json`: what a run found, for machines; the terminal table and the report are made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from causalpima.inference.analyses.scores import Found, Known, scores_of
from causalpima.inference.clusters.clustering import cell_sizes, mean_entropy, occupied, uncertainty_coefficient
from causalpima.inference.clusters.identify import SideInformation, claimed, identification
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.arrays import FitArrays, PhysicsArrays
from causalpima.inference.findings.collect import held_out_log_likelihood
from causalpima.inference.findings.graph import mutual_information
from causalpima.inference.findings.linear_model import linear_model_summary
from causalpima.inference.findings.names import cell_names as cell_labels
from causalpima.inference.findings.posterior import graph_search, learned_summary
from causalpima.inference.reporting.findings import FINDINGS
from causalpima.inference.store.files import library_versions

__all__ = [
    "diverged_summary",
    "summarise",
]


UNNAMED: Mapping[str, Any] = {"source": "none", "named_nodes": [], "details": {}}

VARIATIONAL_PRIOR = {
    "node_score": "Normal(0, 1)",
    "edges": "Bernoulli(1/2) per pair, given the order of the scores",
    "tables": "Dirichlet (BDeu)",
    "equivalent_sample_size": 1.0,
}


def summarise(fit: FitArrays, finishing_seconds: float) -> dict[str, Any]:
    """The summary of a finished fit (keys: docs/run_folder.md).

    Args:
        fit: All arrays of the fit.
        finishing_seconds: Time from the last epoch to the arrays.
    """
    outcomes = [len(names) for names in fit.graph.outcome_names]
    nodes = dict(zip(fit.graph.node_names, outcomes, strict=True))
    identifiability = fit.identifiability or _without_side_information(fit, nodes)
    summary = {
        "dataset": fit.dataset,
        "seed": fit.seed,
        "status": fit.status,
        "n_samples": len(fit.responsibilities),
        "modalities": {name: _modality(fit, name) for name in fit.modalities},
        "nodes": nodes,
        "objective": _objective(fit),
        "epochs": len(fit.history),
        "seconds": _seconds(fit.history, finishing_seconds),
        "clusters": _clusters(fit.responsibilities, fit.groups),
        "labelling": claimed(fit.labelling or _by_mask(identifiability), identifiability, fit.responsibilities),
        "identifiability": identifiability,
        "graph": _graph(fit, identifiability),
        "variance_explained": _variance_explained(fit),
        "held_out_log_likelihood": held_out_log_likelihood(fit.draws, fit.split, fit.groups),
        "versions": library_versions(),
    }
    for finding in FINDINGS:
        summary |= finding.entries(fit)
    if fit.environment is not None:
        summary["environments"] = _environments(fit)
    known = Known.of(fit)
    if known.factors and _may_be_scored(known, fit.split):
        summary["evaluation"] = scores_of(Found.of(fit), known, fit.seed)
    return summary


def _by_mask(identifiability: Mapping[str, Any]) -> Mapping[str, Any]:
    """What names nodes where nothing stronger does: which modality sees which, as far as that identifies some."""
    named = identifiability["identified_nodes"]
    if not named or not identifiability["before"]["mask"]:
        return UNNAMED
    return {"source": "mask", "named_nodes": list(named), "details": {}}


def _environments(fit: FitArrays) -> dict[str, Any]:
    """How many environments there are besides the observational one, and as what they were declared."""
    declared = fit.attributes.get("config", {}).get("environments", {}).get("kind", "none")
    n_besides = 0 if fit.environment is None else len(np.unique(fit.environment[fit.environment > 0]))
    return {"n_besides_observational": n_besides, "kind": declared}


def _may_be_scored(known: Known, split: np.ndarray) -> bool:
    """Whether there is a sample of which every scored factor is known, in the test where there is one."""
    complete = np.all([codes >= 0 for codes in known.factors.values()], axis=0)
    is_test = split == "test"
    return bool((complete & is_test if is_test.any() else complete).any())


def diverged_summary(
    data: MultimodalData, seed: int, nodes: Mapping[str, int], history: Sequence[Mapping[str, Any]], reason: str
) -> dict[str, Any]:
    """The summary of a run that stopped being finite: what was asked for and why it failed, no results."""
    return {
        "dataset": data.name,
        "seed": seed,
        "status": "diverged",
        "reason": reason,
        "n_samples": data.n_samples,
        "modalities": {
            name: {"shape": list(values.shape[1:]), "present": int(data.present[name].sum())}
            for name, values in data.modalities.items()
        },
        "nodes": dict(nodes),
        "epochs": len(history),
        "seconds": _seconds(history, 0.0),
        "versions": library_versions(),
    }


def _modality(fit: FitArrays, name: str) -> dict[str, Any]:
    modality = fit.modalities[name]
    entry: dict[str, Any] = {
        "shape": list(modality.decoded.shape[1:]),
        "kind": modality.kind,
        "unit": modality.unit,
        "present": int(fit.present[name].sum()),
        "missing_elements": modality.missing_elements,
        "likelihood": modality.likelihood,
        "transform": modality.transform,
        "decoder_variance": {"training": modality.variance_training, "reported": modality.variance},
    }
    if modality.axis is not None:
        entry["axis"] = {"name": modality.axis.name, "unit": modality.axis.unit}
    if modality.physics is not None:
        entry["physics"] = _physics(modality.physics, cell_labels(fit.graph))
    return entry


def _physics(physics: PhysicsArrays, cells: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """By the name of the cell, as in posterior.nc, and the name of the parameter; NaN becomes null in the file."""
    return {
        cell: {name: _estimate(physics, c, p) for p, name in enumerate(physics.names)} for c, cell in enumerate(cells)
    }


def _estimate(physics: PhysicsArrays, cell: int, parameter: int) -> dict[str, Any]:
    numbers = ("value", "standard_error", "lower", "upper")
    return {
        **{key: float(getattr(physics, key)[cell, parameter]) for key in numbers},
        "unit": physics.units[parameter],
        "status": str(physics.status[cell, parameter]),
        "effective_samples": float(physics.effective_samples[cell]),
    }


def _objective(fit: FitArrays) -> dict[str, Any]:
    training = _comparable([record for record in fit.history if record["phase"] == "training"])
    if not training:
        return {"name": fit.objective, "value": None, "per_sample": None, "split": None} | _latent_prior(fit)
    split = "train" if training[-1]["validation_objective"] is None else "validation"
    key = "objective" if split == "train" else "validation_objective"
    per_sample = max(record[key] for record in training)
    value = per_sample * int((fit.split == split).sum())
    entry = {"name": fit.objective, "value": value, "per_sample": per_sample, "split": split}
    return entry | _kl_weight(training[-1]) | _latent_prior(fit)


def _comparable(training: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The epochs whose bound has the weight β of the last one: while it rises, they are bounds of different things."""
    return [record for record in training if record.get("kl_weight", 1.0) == training[-1].get("kl_weight", 1.0)]


def _kl_weight(record: Mapping[str, Any]) -> dict[str, float]:
    """β, where what was maximised is no bound."""
    weight = record.get("kl_weight", 1.0)
    return {} if weight == 1 else {"kl_weight": weight}


def _latent_prior(fit: FitArrays) -> dict[str, Any]:
    """Held-out bounds under a prior without cells, before clusters were read out; nothing where the prior has cells."""
    if fit.draws.log_weight_without_cells is None:
        return {}
    name = ((fit.attributes.get("config") or {}).get("model") or {}).get("prior")
    draws = replace(fit.draws, log_weight=fit.draws.log_weight_without_cells)
    return {"latent_prior": {"name": name, **(held_out_log_likelihood(draws, fit.split, fit.groups) or {})}}


def _seconds(history: Sequence[Mapping[str, Any]], finishing: float) -> dict[str, float]:
    spent = {
        phase: round(sum(record["seconds"] for record in history if record["phase"] == phase), 3)
        for phase in ("pretraining", "training")
    }
    return {**spent, "total": round(sum(spent.values()) + finishing, 3)}


def _clusters(responsibilities: np.ndarray, groups: np.ndarray | None) -> dict[str, Any]:
    share, sizes = responsibilities.mean(0), cell_sizes(responsibilities)
    weighted = np.where(share > 0, -share * np.log(np.where(share > 0, share, 1.0)), 0.0)
    return {
        "n_requested": responsibilities.shape[1],
        "n_occupied": int(occupied(sizes).sum()),
        "effective_number": float(np.exp(weighted.sum())),
        "sizes": sizes.tolist(),
        "n_groups": None if groups is None else _groups_per_cell(responsibilities, groups),
        "entropy": mean_entropy(responsibilities),
        "uncertainty_coefficient": uncertainty_coefficient(responsibilities),
    }


def _groups_per_cell(responsibilities: np.ndarray, groups: np.ndarray) -> list[int]:
    """Every group counts once: for the cell with the largest sum of q(N|X) over its samples."""
    codes = np.unique(groups, return_inverse=True)[1]
    mass = np.zeros((codes.max() + 1, responsibilities.shape[1]))
    np.add.at(mass, codes, responsibilities)
    counts: list[int] = np.bincount(mass.argmax(1), minlength=mass.shape[1]).tolist()
    return counts


def _without_side_information(fit: FitArrays, nodes: Mapping[str, int]) -> dict[str, Any]:
    return identification(SideInformation(nodes), fit.labelling, fit.responsibilities, [])


def _graph(fit: FitArrays, identifiability: Mapping[str, Any]) -> dict[str, Any]:
    """The learned graph; with `equivalence_class`, `posterior` and `posthoc` where nodes have a meaning."""
    graph = fit.graph
    return {
        "node_names": list(graph.node_names),
        "edge_strength": graph.edge_strength.tolist(),
        "adjacency": graph.adjacency.tolist(),
        "log_joint": graph.log_joint.tolist(),
        "mutual_information": mutual_information(graph.log_joint).tolist(),
        "temperature": graph.temperature,
        "equivalent_labellings": identifiability["equivalent_labellings"],
        **_given(fit.attributes),
        **_variational(graph.variational_edges),
        **linear_model_summary(graph),
        **_searched(fit, identifiability),
        **learned_summary(fit, identifiability["is_named"]),
    }


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The edges of a graph that the fit was told (`--model.graph fixed:FILE`)."""
    model = (attributes.get("config") or {}).get("model") or {}
    return {"given": list(model.get("edges") or ())} if model.get("graph") == "fixed" else {}


def _variational(edges: np.ndarray | None) -> dict[str, Any]:
    """q(edge) of a guide over graphs, and its prior; nothing where the guide has one graph."""
    return {} if edges is None else {"variational": {"edge_probability": edges.tolist(), "prior": VARIATIONAL_PRIOR}}


def _searched(fit: FitArrays, identifiability: Mapping[str, Any]) -> Mapping[str, Any]:
    if not identifiability["is_named"]:
        return {}
    return graph_search(fit) if fit.searched is None else fit.searched


def _variance_explained(fit: FitArrays) -> dict[str, dict[str, Any]]:
    """Per modality: by each node alone, by nodes of the same clusters named at random, and by all cells together."""
    names = fit.graph.node_names
    return {
        modality: {
            "nodes": dict(zip(names, found.nodes.tolist(), strict=True)),
            "random_labelling": dict(zip(names, found.random.tolist(), strict=True)),
            "all_cells": found.cells,
        }
        for modality, found in fit.variance_explained.items()
    }
