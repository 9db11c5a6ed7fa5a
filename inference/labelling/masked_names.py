"""Names of clusters that contradict a mask: a modality sees some nodes alone, and tells no other clusters apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["check_mask"]


def check_mask(
    permutation: np.ndarray, outcomes: Sequence[int], visible: Mapping[str, Sequence[int]], names: Sequence[str]
) -> None:
    """Refuse names that differ, in a node that a modality sees, for clusters that are alike in this modality.

    Args:
        permutation: Cluster c is to become cell `permutation[c]`, `[C]`.
        outcomes: Outcomes per node.
        visible: Positions of the nodes that each modality sees.
        names: Names of the nodes.

    Raises:
        ValueError: The first two such clusters, in the words of whoever gave the names.
    """
    before = np.stack(np.unravel_index(np.arange(len(permutation)), tuple(outcomes)), axis=1)
    after = np.stack(np.unravel_index(permutation, tuple(outcomes)), axis=1)
    for modality, nodes in visible.items():
        seen = list(nodes)
        _, first, level = np.unique(before[:, seen], axis=0, return_index=True, return_inverse=True)
        like = first[level.reshape(-1)]
        differs = np.argwhere(after[:, seen] != after[like][:, seen])
        if len(differs):
            cluster, column = map(int, differs[0])
            raise ValueError(
                f"{modality} looks alike in clusters {like[cluster]} and {cluster}; give them one name of "
                f"{names[seen[column]]}"
            )
