"""p(N) without interventions, from all environments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.labelling.labelling_search import as_tables

__all__ = ["interventional_joint"]


def interventional_joint(
    counts: np.ndarray, labelling: np.ndarray, outcomes: Sequence[int], graph: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    r"""Maximum likelihood of $p(N) = \prod_\ell p(N_\ell \mid N_{pa(\ell)})$, each factor from what left it alone.

    Factor l is the share of its counts over the environments that do not intervene upon node l; uniform where a
    configuration of the parents never occurs in these.

    Args:
        counts: Samples per environment and cluster, `[1 + E, C]`; the first is observational.
        labelling: `[C]`.
        outcomes: Outcomes per node.
        graph: `[L, L]`, row = cause, column = effect.
        targets: Node that each environment but the first intervenes upon, `[E]`.

    Returns:
        `[C_1, ..., C_L]`.
    """
    table = as_tables(counts, labelling[None], outcomes)[0]
    joint = np.ones(tuple(outcomes))
    for node, parents in enumerate(graph.T):
        left_alone = np.array([True, *(targets != node)])
        others = tuple(k for k in range(len(outcomes)) if k != node and not parents[k])
        family = table[left_alone].sum(0).sum(others, keepdims=True)
        total = family.sum(node, keepdims=True)
        uniform = np.full(family.shape, 1.0 / outcomes[node])
        joint = joint * np.divide(family, total, out=uniform, where=total > 0)
    return joint
