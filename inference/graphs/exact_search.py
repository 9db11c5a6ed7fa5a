"""The best equivalence class of graphs by BIC, by scoring every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inference.graphs.cpdag import class_codes
from inference.graphs.dags import all_dags
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.mixture_likelihood import count_parameters, fit_dags

__all__ = ["ScoredClasses", "score_classes", "unions"]

_TIE = 1e-3


@dataclass(frozen=True)
class ScoredClasses:
    """All Markov equivalence classes over the nodes that hold a possible graph, the best first.

    Attributes:
        dags: A graph of each class, `[class, L, L]`.
        graphs: Each class as far as its graphs are possible, `[class, L, L]`, 1 both ways where these disagree on a
            direction: its CPDAG where nothing is known.
        log_likelihood: Its maximum, in nats, `[class]`.
        n_parameters: Free parameters, `[class]`.
        bic: `log_likelihood - n_parameters / 2 log n`, higher is better, `[class]`.
        joint: p(N) of each class at its maximum, `[class, C_1, ..., C_L]`.
        members: All possible graphs, `[G, L, L]`.
        class_of_member: Position of the class of each, `[G]`.
    """

    dags: np.ndarray
    graphs: np.ndarray
    log_likelihood: np.ndarray
    n_parameters: np.ndarray
    bic: np.ndarray
    joint: np.ndarray
    members: np.ndarray
    class_of_member: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """The best class, `[L, L]`."""
        first: np.ndarray = self.graphs[0]
        return first

    @property
    def gap(self) -> float | None:
        """How much better the best class is than the next, in nats of BIC; None where there is only one."""
        return float(self.bic[0] - self.bic[1]) if len(self.bic) > 1 else None

    @property
    def n_tied(self) -> int:
        """Number of classes that are as good as the best one, it included."""
        return int((self.bic > self.bic[0] - _TIE).sum())


def score_classes(
    log_likelihood: np.ndarray,
    outcomes: Sequence[int],
    n_samples: int | None = None,
    weights: np.ndarray | None = None,
    knowledge: GraphKnowledge | None = None,
) -> ScoredClasses:
    """Score every equivalence class of graphs over up to five nodes.

    Equivalent graphs have one maximum and one number of parameters, so that one graph stands for its class: 2, 11, 185,
    8782 classes of 2, 3, 4, 5 nodes.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample; of samples of known cell, 0 there and
            -inf elsewhere.
        outcomes: Number of outcomes of each node.
        n_samples: The n of BIC; by default the sum of the weights.
        weights: How much each sample counts, `[n]` (`group_weights`); by default 1.
        knowledge: Which graphs are possible; by default all.

    Raises:
        ValueError: More than five nodes, or cells that do not fit them.
    """
    members = all_dags(len(outcomes))
    members = members if knowledge is None else members[knowledge.allows(members)]
    _, first, number = np.unique(class_codes(members), return_index=True, return_inverse=True)
    dags, n = members[first], n_samples or _total(log_likelihood, weights)
    fitted = fit_dags(log_likelihood, outcomes, dags, weights=weights)
    parameters = np.array([count_parameters(dag, outcomes) for dag in dags])
    bic = fitted.log_likelihood - parameters / 2 * np.log(n)
    order = np.lexsort((parameters, -bic))
    return ScoredClasses(
        dags[order],
        unions(members, number.reshape(-1))[order],
        fitted.log_likelihood[order],
        parameters[order],
        bic[order],
        fitted.joint[order].reshape(-1, *outcomes),
        members,
        np.argsort(order)[number.reshape(-1)],
    )


def unions(dags: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Every class as one graph: an edge is one way where all graphs of the class agree on it.

    Args:
        dags: `[G, L, L]`.
        number: Class of each graph, from 0 on, `[G]`.

    Returns:
        int64 `[class, L, L]`.
    """
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    return np.asarray(np.maximum.reduceat(dags[order], starts, axis=0), dtype=np.int64)


def _total(log_likelihood: np.ndarray, weights: np.ndarray | None) -> float:
    return len(log_likelihood) if weights is None else float(weights.sum())
