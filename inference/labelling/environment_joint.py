"""p(N) without interventions and under each, from all environments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.graphs.environment_likelihood import factorised
from inference.labelling.labelling_search import as_tables

__all__ = ["interventional_joint", "interventional_joints"]


def interventional_joints(
    counts: np.ndarray, labelling: np.ndarray, outcomes: Sequence[int], graph: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    r"""Maximum likelihood of p(N | e) under do-type interventions, each factor from what left its node alone.

    Factor l of $p(N) = \prod_\ell p(N_\ell \mid N_{pa(\ell)})$ is the share of its counts over the environments that do
    not intervene upon node l; in one that does, it is the share of its outcomes there, whatever the parents.

    Args:
        counts: Samples per environment and cluster, `[1 + E, C]`; the first is observational.
        labelling: `[C]`.
        outcomes: Outcomes per node.
        graph: `[L, L]`, row = cause, column = effect.
        targets: Node that each environment but the first intervenes upon, `[E]`.

    Returns:
        `[1 + E, C_1, ..., C_L]`; the first is p(N).
    """
    return factorised(as_tables(counts, labelling[None], outcomes)[0], graph, np.asarray(targets), "do")


def interventional_joint(
    counts: np.ndarray, labelling: np.ndarray, outcomes: Sequence[int], graph: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """p(N) without interventions, `[C_1, ..., C_L]`: the first of `interventional_joints`."""
    joint: np.ndarray = interventional_joints(counts, labelling, outcomes, graph, targets)[0]
    return joint
