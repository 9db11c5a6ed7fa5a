"""Starts as chains: their cells numbered alike, and what they say of nodes and edges then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from inference.clusters.agreement import align_cells, align_nodes, node_agreement
from inference.data.environments import observational_rows
from inference.graphs.exact_search import score_classes
from inference.graphs.group_weights import group_weights
from inference.results.arrays import FitArrays
from inference.results.graph_posterior import declared_knowledge
from inference.results.node_samples import node_likelihood
from inference.results.restart_arrays import FoundStart, RestartArrays, StartArrays
from inference.results.restart_comparison import Comparison

__all__ = ["aligned", "alignment", "chains"]

_MOST_SEARCHED_NODES = 4
_MOST_SEARCHED_SAMPLES = 20_000
_UP_TO_OUTCOMES = {"mask": False, "independence": True}
"""Sources of labellings that leave open which outcome is which, and whether nodes may change places, too."""


def chains(comparison: Comparison, fit: FitArrays) -> RestartArrays:
    """The starts that did not fail as chains, their cells numbered as those of the chosen one.

    Args:
        comparison: The starts.
        fit: The chosen one, as it is numbered now.
    """
    others = [_renumbered(comparison.starts[number], fit) for number in comparison.chain[1:]]
    parts = [_chain(start, fit) for start in (StartArrays.of(fit), *others)]
    likelihood = {name: np.stack([part.log_likelihood[name] for part, *_ in parts]) for name in fit.modalities}
    graphs = [graph for *_, graph in parts if graph is not None]
    latent = [draws for part, *_ in parts[1:] if (draws := _in_latent_space_of(fit, part)) is not None]
    return RestartArrays(
        status=np.array([start.status for start in comparison.starts]),
        entropy=np.array([_number(quality.entropy) for quality in comparison.qualities]),
        ari=comparison.ari,
        chain=np.array(comparison.chain),
        nodes=np.stack([part.nodes for part, *_ in parts]),
        log_weight=np.stack([part.log_weight for part, *_ in parts]),
        log_likelihood=likelihood,
        responsibilities=np.stack([part.responsibilities[fit.draws.samples] for part, *_ in parts]),
        log_joint=np.stack([part.log_joint for part, *_ in parts]),
        node_agreement=np.stack([agreement for _, agreement, _ in parts]),
        cpdag=np.stack(graphs) if graphs else None,
        latent=None if len(latent) < len(parts) - 1 else np.stack([fit.draws.latent, *latent]),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _renumbered(found: FoundStart, fit: FitArrays) -> StartArrays:
    start = found.read()
    return aligned(start, alignment(fit, start, found.summary.get("labelling") or {}))


def _chain(start: StartArrays, fit: FitArrays) -> tuple[StartArrays, np.ndarray, np.ndarray | None]:
    """A start with aligned cells, its agreement with the chosen one per node, and the graph of its cells."""
    agreement = node_agreement(fit.responsibilities.argmax(1), start.responsibilities.argmax(1), start.outcomes)
    return start, agreement, _graph(start, fit)


def alignment(fit: FitArrays, start: StartArrays, labelling: Mapping[str, Any]) -> np.ndarray:
    """How the cells of a start are numbered to be compared: only as far as side information does not name them.

    - No side information, or names that a person gave to the chosen start alone: any bijection (`align_cells`).
    - A mask, or nodes that are known to be independent: outcomes within nodes, of independent ones the nodes, too
      (`align_nodes`).
    - Else, cells that agree in the nodes that are named; the identity where all are.

    Args:
        fit: The chosen start, as it is numbered now.
        start: The other one.
        labelling: Where the meaning of the cells of the other one comes from (`summary["labelling"]`).
    """
    reference, other, outcomes = fit.responsibilities, start.responsibilities, start.outcomes
    if (fit.labelling or {}).get("source") == "names":
        return align_cells(reference, other, outcomes)
    source, named = labelling.get("source", "none"), set(labelling.get("named_nodes", ()))
    if source in _UP_TO_OUTCOMES:
        return align_nodes(reference, other, outcomes, exchange=_UP_TO_OUTCOMES[source])
    return align_cells(reference, other, outcomes, [i for i, name in enumerate(fit.graph.node_names) if name in named])


def aligned(start: StartArrays, permutation: np.ndarray) -> StartArrays:
    """The same start with cell c renamed to `permutation[c]`."""
    back, outcomes = np.argsort(permutation), start.outcomes
    cells = np.ravel_multi_index(tuple(np.moveaxis(start.nodes, -1, 0)), outcomes)
    nodes = np.stack(np.unravel_index(permutation[cells], outcomes), axis=-1)
    return replace(
        start,
        responsibilities=start.responsibilities[:, back],
        nodes=nodes.astype(start.nodes.dtype),
        log_joint=start.log_joint.reshape(-1)[back].reshape(outcomes),
    )


def _in_latent_space_of(fit: FitArrays, start: StartArrays) -> np.ndarray | None:
    r"""Draws of Z of another start in the coordinates of the chosen one, `[D, S, J]`; None where they were not kept.

    The affine map that takes the means of q(Z|X) of all samples to those of the chosen start with the least squared
    error. Z is known up to such a map at best: A z + b in encoders, mixture and the first layers of decoders leaves
    the likelihood as it was (Kivva et al. 2022, Identifiability of deep generative models without auxiliary
    information).
    """
    if start.latent is None or start.latent_loc is None:
        return None
    loc, target = start.latent_loc.astype(np.float64), fit.latent_loc.astype(np.float64)
    centre = loc.mean(0)
    slope = np.linalg.lstsq(loc - centre, target - target.mean(0), rcond=None)[0]
    mapped: np.ndarray = (start.latent - centre) @ slope + target.mean(0)
    return mapped.astype(fit.draws.latent.dtype)


def _graph(start: StartArrays, fit: FitArrays) -> np.ndarray | None:
    """The best equivalence class of graphs over the cells, found anew: the learned one was of the old numbers."""
    if len(start.outcomes) > _MOST_SEARCHED_NODES:
        return None
    rows = _searched(fit)
    labels = None if fit.node_labels is None else fit.node_labels[rows]
    likelihood = node_likelihood(start.responsibilities[rows], start.log_joint.reshape(start.outcomes), labels)
    weights = group_weights(None if fit.groups is None else fit.groups[rows])
    known = declared_knowledge(fit.attributes, fit.graph.node_names)
    return score_classes(likelihood, start.outcomes, weights=weights, knowledge=known).best


def _searched(fit: FitArrays) -> np.ndarray:
    """Observational training samples, evenly spread where there are too many."""
    found = np.flatnonzero(observational_rows(fit.split == "train", fit.environment))
    return found[:: -(-len(found) // _MOST_SEARCHED_SAMPLES) or 1]
