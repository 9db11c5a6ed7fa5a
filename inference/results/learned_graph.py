"""The graph that a classical learner finds on the nodes of a fit (`model.graph=posthoc:...`): an entry of a summary.

Where it finds none, the summary says why instead, so that a learner that was asked for never stays away in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inference.data.environments import observational_rows
from inference.graphs.learners import POSTHOC, learn_graph
from inference.results.arrays import FitArrays
from inference.results.graph_posterior import declared_knowledge
from inference.results.node_samples import node_samples

__all__ = ["learned_summary"]


_NOT_NAMED = (
    "the nodes have no names, and a graph between unnamed clusters means nothing; label nodes (--labels), or name the "
    "clusters afterwards (inference.name)"
)
_NO_SAMPLE = "no training sample is without intervention"
_NO_BLOCKS = "names left blocks of Z that are of no node, so that no node has a number of its own"


def learned_summary(fit: FitArrays, is_named: bool = True) -> dict[str, Any]:
    """`posthoc`: what the learner of the configuration finds; nothing without one, and for one node.

    Of samples without intervention that were trained on, every node has the outcome of the most probable cell, within
    what labels allow; a group counts once, for the cell with the largest sum over its samples. LiNGAM gets means of
    E[Z | X] instead, one number per node, and finds nothing where names left blocks of Z that are of no node.

    Args:
        fit: A fit.
        is_named: Whether all of its nodes are identified; the learner does not run otherwise.

    Returns:
        `posthoc`, or `posthoc_left_out` {`method`, `reason`} where the learner did not run.

    Raises:
        ValueError: causal-learn is not installed.
    """
    kind = ((fit.attributes.get("config") or {}).get("model") or {}).get("graph")
    if kind not in POSTHOC or len(fit.graph.node_names) < 2:
        return {}
    if not is_named:
        return _left_out(kind, _NOT_NAMED)
    values = _latents(fit) if kind == "posthoc:lingam" else _outcomes(fit)
    if values is None:
        return _left_out(kind, _NO_BLOCKS if _rows(fit).any() else _NO_SAMPLE)
    found = learn_graph(kind, values, declared_knowledge(fit.attributes, fit.graph.node_names))
    return {"posthoc": _plain(kind, found.graph, found.settings, found.conflicts, fit, len(values))}


def _left_out(kind: str, reason: str) -> dict[str, Any]:
    return {"posthoc_left_out": {"method": kind.removeprefix("posthoc:"), "reason": reason}}


def _plain(
    kind: str,
    graph: np.ndarray,
    settings: str,
    conflicts: tuple[tuple[int, int], ...],
    fit: FitArrays,
    n_samples: int,
) -> Mapping[str, Any]:
    names = fit.graph.node_names
    return {
        "method": kind.removeprefix("posthoc:"),
        "settings": settings,
        "node_names": list(names),
        "cpdag": graph.tolist(),
        "conflicts": [[names[i], names[j]] for i, j in conflicts],
        "n_samples": n_samples,
    }


def _outcomes(fit: FitArrays) -> np.ndarray | None:
    """Codes of every node, `[n, L]`; None where no sample counts."""
    samples = node_samples(fit)
    if samples is None:
        return None
    log_weight = samples.log_likelihood + fit.graph.log_joint.reshape(-1)
    weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
    cell = _summed(weight / weight.sum(1, keepdims=True), fit).argmax(1)
    return np.stack(np.unravel_index(cell, fit.graph.log_joint.shape), axis=1)


def _latents(fit: FitArrays) -> np.ndarray | None:
    """Mean of E[Z given X] of every group by node, `[n, L]`; None where no sample counts, or blocks are of no node."""
    rows, columns = _rows(fit), _columns_of_nodes(fit)
    if not rows.any() or columns is None:
        return None
    counted = _summed(np.ones((int(rows.sum()), 1)), fit)
    return _summed(fit.latent_loc[rows][:, columns].astype(np.float64), fit) / counted


def _columns_of_nodes(fit: FitArrays) -> list[int] | None:
    """Dimension of Z that is every node's; None where one is of several or none.

    Under `nodewise` labels may have exchanged the nodes of blocks, and names may have mixed them: the means of a block
    tell, which change with its node alone. The blocks of `linear_scm` are those of the nodes in order.
    """
    shape = fit.graph.log_joint.shape
    if fit.attributes["config"]["model"]["prior"] != "nodewise":
        return list(range(len(shape)))
    means = fit.mixture.loc[np.argsort(fit.mixture.cell)].reshape(*shape, -1)
    changes = np.stack([np.ptp(means, axis=node).max(tuple(range(len(shape) - 1))) > 0 for node in range(len(shape))])
    if (changes.sum(0) != 1).any() or (changes.sum(1) != 1).any():
        return None
    return [int(column) for column in changes.argmax(1)]


def _rows(fit: FitArrays) -> np.ndarray:
    return observational_rows(fit.split == "train", fit.environment)


def _summed(values: np.ndarray, fit: FitArrays) -> np.ndarray:
    """Of rows that count, sums over every group, `[groups, ...]`; the rows themselves without groups."""
    if fit.groups is None:
        return values
    codes = np.unique(fit.groups[_rows(fit)], return_inverse=True)[1]
    sums = np.zeros((codes.max() + 1, values.shape[1]))
    np.add.at(sums, codes, values)
    return sums
