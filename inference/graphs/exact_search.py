"""The best equivalence class of graphs by BIC, by scoring every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inference.graphs.cpdag import class_codes, cpdag
from inference.graphs.dags import all_dags
from inference.graphs.mixture_likelihood import count_parameters, fit_dags

__all__ = ["ScoredClasses", "score_classes"]

_TIE = 1e-3


@dataclass(frozen=True)
class ScoredClasses:
    """All Markov equivalence classes over the nodes, the best first.

    Attributes:
        dags: A graph of each class, `[class, L, L]`.
        log_likelihood: Its maximum, in nats, `[class]`.
        n_parameters: Free parameters, `[class]`.
        bic: `log_likelihood - n_parameters / 2 log n`, higher is better, `[class]`.
        joint: p(N) of each class at its maximum, `[class, C_1, ..., C_L]`.
    """

    dags: np.ndarray
    log_likelihood: np.ndarray
    n_parameters: np.ndarray
    bic: np.ndarray
    joint: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """CPDAG of the best class, `[L, L]`."""
        return cpdag(self.dags[0])

    @property
    def gap(self) -> float | None:
        """How much better the best class is than the next, in nats of BIC; None where there is only one."""
        return float(self.bic[0] - self.bic[1]) if len(self.bic) > 1 else None

    @property
    def n_tied(self) -> int:
        """Number of classes that are as good as the best one, it included."""
        return int((self.bic > self.bic[0] - _TIE).sum())


def score_classes(log_likelihood: np.ndarray, outcomes: Sequence[int], n_samples: int | None = None) -> ScoredClasses:
    """Score every equivalence class of graphs over up to five nodes.

    Equivalent graphs have one maximum and one number of parameters, so that one graph stands for its class: 2, 11, 185,
    8782 classes of 2, 3, 4, 5 nodes.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample; of samples of known cell, 0 there and
            -inf elsewhere.
        outcomes: Number of outcomes of each node.
        n_samples: The n of BIC (of independent groups, say); by default the number of rows.

    Raises:
        ValueError: More than five nodes, or cells that do not fit them.
    """
    dags = all_dags(len(outcomes))
    dags = dags[np.unique(class_codes(dags), return_index=True)[1]]
    fitted = fit_dags(log_likelihood, outcomes, dags)
    parameters = np.array([count_parameters(dag, outcomes) for dag in dags])
    bic = fitted.log_likelihood - parameters / 2 * np.log(n_samples or len(log_likelihood))
    order = np.lexsort((parameters, -bic))
    joint = fitted.joint[order].reshape(-1, *outcomes)
    return ScoredClasses(dags[order], fitted.log_likelihood[order], parameters[order], bic[order], joint)
