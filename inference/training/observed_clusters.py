"""Clusters of samples whose labels take part in the training: what is observed stays as it was observed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod

import numpy as np

from inference.clusters.matching import match_cells, relabel
from inference.clusters.read_out import ReadOut
from inference.clusters.told_cells import centred, keep_allowed, observed_nodes, split_by_outcomes
from inference.training.config import FitConfig

__all__ = ["under_labels"]


def under_labels(
    found: ReadOut,
    allowed: np.ndarray,
    embedding: np.ndarray,
    config: FitConfig,
    unseen: Collection[str],
    read: Callable[[np.ndarray, int], ReadOut],
    present: np.ndarray | None,
) -> ReadOut:
    """The clusters with every sample in cells that its labels allow.

    Where a node is observed of all samples and clusters do not follow it (its labels are no better than chance), the
    clusters are those of the other nodes, read out of the embedding centred by what is observed, and each is split by
    the observed outcomes. That takes them to be the same clusters under every outcome, up to a shift.

    Args:
        found: What was read out without labels, with cells numbered by them.
        allowed: Cells that labels leave possible, bool `[n, C]`.
        embedding: `[n, J]`.
        config: The configuration.
        unseen: Nodes that clusters do not follow.
        read: From an embedding and a number of cells to clusters.
        present: q(N|X) of the model's present cells, `[n, C]`, which numbers are to agree with; None: with none.
    """
    observed = observed_nodes(allowed, config.outcomes)
    n_hidden = prod(count for node, count in enumerate(config.outcomes) if node not in observed)
    is_unseen = any(list(config.nodes)[node] in unseen for node in observed)
    if is_unseen and n_hidden > 1:
        cells = np.stack(np.unravel_index(allowed.argmax(1), config.outcomes), axis=1)
        codes = cells[:, list(observed)]
        joint = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
        hidden = read(centred(embedding, joint), n_hidden)
        if present is not None:
            axes = tuple(1 + node for node in observed)
            kept = present.reshape(-1, *config.outcomes).sum(axes).reshape(len(present), -1)
            hidden = relabel(hidden, match_cells(kept, hidden.cell_responsibilities))
        found = split_by_outcomes(hidden, codes, config.outcomes, observed)
    return keep_allowed(found, allowed, embedding)
