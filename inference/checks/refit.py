"""Cells and edges found anew, by what a run does: read out of the embedding, and the posterior over graphs."""

from __future__ import annotations

import numpy as np

from inference.checks.embedded_run import EmbeddedRun
from inference.clusters.masked_em import View, masked_em
from inference.clusters.matching import match_cells, relabel
from inference.clusters.node_matching import match_nodes
from inference.clusters.read_out import ReadOut, read_out
from inference.clusters.round_clusters import read_out_round
from inference.clusters.told_cells import keep_allowed
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.graphs.mixture_posterior import MOST_SCORED_NODES, NodeSamples, mixture_posterior
from inference.graphs.posterior import Score
from inference.graphs.search_cost import counts_are_quick, is_quick
from models.levels import level_of_cell

__all__ = ["edges_not_searched", "joined", "refit"]

_MORE_LIKELY_THAN_NOT = 0.5
_MOST_FITTED = 4096


def refit(run: EmbeddedRun, rows: np.ndarray, seed: int, loc: np.ndarray | None = None) -> np.ndarray:
    """Cells read out of some samples anew, numbered so that they agree most with those of the run.

    With a third of the starts of a run, on at most 4096 samples. Labels that took part in the training keep their
    samples in the cells that they allow, but not where samples are somewhere else than in the run.

    Args:
        run: The run.
        rows: Which samples, each as often as it is named, `[m]`.
        seed: Of the starts.
        loc: Where all samples are, `[n, J]`; default where the run has them.

    Returns:
        Responsibilities `[m, C]`.
    """
    points = (run.loc if loc is None else loc)[rows]
    found, reference = _read(run, points, rows, seed), run.responsibilities[rows]
    if run.visible:
        permutation = match_nodes(reference, found.cell_responsibilities, run.outcomes, list(run.visible.values()))
    else:
        permutation = match_cells(reference, found.cell_responsibilities)
    found = relabel(found, permutation)
    if run.allowed is not None and loc is None:
        found = keep_allowed(found, run.allowed[rows], points)
    return found.cell_responsibilities


def _read(run: EmbeddedRun, points: np.ndarray, rows: np.ndarray, seed: int) -> ReadOut:
    if run.visible:
        views = [_view(run, name, points, rows) for name in run.visible]
        return masked_em(views, n_starts=8, n_best=1, n_fit=_MOST_FITTED, seed=seed)
    if run.by_node:
        return masked_em(_node_views(run, points), n_starts=8, n_best=1, n_fit=_MOST_FITTED, seed=seed)
    if run.shape == "round":
        return read_out_round(points, run.n_cells, n_init=3, n_fit=_MOST_FITTED, seed=seed)
    return read_out(points, run.n_cells, n_init=1, n_fit=_MOST_FITTED, seed=seed)


def _view(run: EmbeddedRun, name: str, points: np.ndarray, rows: np.ndarray) -> View:
    level = level_of_cell(run.outcomes, run.visible[name])
    return View(points[:, run.block(name)], level, run.present[name][rows])


def _node_views(run: EmbeddedRun, points: np.ndarray) -> list[View]:
    """The blocks of Z in order, one per node, seen of all samples."""
    blocks, all_of_them = np.split(points, len(run.outcomes), axis=1), np.ones(len(points), dtype=bool)
    return [View(block, level_of_cell(run.outcomes, (node,)), all_of_them) for node, block in enumerate(blocks)]


def joined(run: EmbeddedRun, responsibilities: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Which nodes are more likely joined than not, bool `[L, L]`, symmetric: by the posterior over graphs (BIC).

    What the run declares of its graph holds here, too; labels of single samples play no part.

    Args:
        run: For nodes and knowledge.
        responsibilities: q(N|X), `[m, C]`.
        weights: How much each sample counts, `[m]`; None: 1.
    """
    samples = NodeSamples(run.node_names, run.outcomes, log_likelihood_ratio(responsibilities), weights)
    return mixture_posterior(samples, Score(), run.known).adjacency_probability > _MORE_LIKELY_THAN_NOT


def edges_not_searched(run: EmbeddedRun) -> str | None:
    """Why edges are not looked for; None where they are."""
    if len(run.outcomes) < 2:
        return "there is one node"
    if not run.named:
        return "the clusters are unnamed: dependence between their nodes has no meaning"
    likelihood = log_likelihood_ratio(run.responsibilities)
    quick = is_quick if len(run.outcomes) <= MOST_SCORED_NODES else counts_are_quick
    if not quick(likelihood, run.outcomes):
        return "the search takes more than a second, and would be needed dozens of times"
    return None
