"""A posterior over graphs, however it was computed: what all readers of graphs work with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = ["GraphPosterior", "Method", "Score", "WeighedClass"]

_LARGEST_SIZE = 1e9

Method = Literal["enumeration", "exact sums", "partition mcmc"]


class Score(NamedTuple):
    """How a graph is scored.

    Attributes:
        name: `bic` (maximum log-likelihood less `d / 2 log n`) or `bdeu` (marginal likelihood under a Dirichlet prior).
        equivalent_sample_size: Of BDeu; None for BIC.
    """

    name: Literal["bic", "bdeu"] = "bic"
    equivalent_sample_size: float | None = None

    @classmethod
    def of(cls, name: Literal["bic", "bdeu"], equivalent_sample_size: float | None = None) -> Score:
        """BDeu has an equivalent sample size, 1 where none is given; BIC has none.

        Raises:
            ValueError: An equivalent sample size of BIC, or one that is not above 0, or so large that log Γ of it has
                no digits left for the samples.
        """
        if name == "bic" and equivalent_sample_size is not None:
            raise ValueError("equivalent_sample_size: expected it with BDeu, got the score bic; choose bdeu")
        size = 1.0 if equivalent_sample_size is None else float(equivalent_sample_size)
        if not 0 < size <= _LARGEST_SIZE:
            wanted = f"at most {_LARGEST_SIZE:g}" if _LARGEST_SIZE < size < float("inf") else "a number above 0"
            raise ValueError(f"equivalent_sample_size: expected {wanted}, got {size:g}; pass one, say 1")
        return cls() if name == "bic" else cls(name, size)

    @property
    def sample_size(self) -> float:
        """The equivalent sample size of BDeu.

        Raises:
            ValueError: It has none, or one that is not above 0.
        """
        size = self.equivalent_sample_size
        if size is None or not 0 < size < float("inf"):
            got = "none" if size is None else f"{size:g}"
            raise ValueError(f"score: expected BDeu with an equivalent sample size above 0, got {got}; pass one, say 1")
        return size


class WeighedClass(NamedTuple):
    """An equivalence class and its posterior probability.

    Attributes:
        graph: `[L, L]`, row = cause, column = effect; 1 both ways where graphs of the class, as far as what is known
            allows them, disagree on the direction.
        probability: In (0, 1].
    """

    graph: np.ndarray
    probability: float


@dataclass(frozen=True)
class GraphPosterior:
    r"""p(G | data) under a uniform prior over the DAGs that agree with what is known (or a declared edge prior).

    Rows are causes and columns are effects, everywhere.

    Attributes:
        nodes: Names of the L nodes.
        edge_probability: p(i → j in the DAG), `[L, L]`.
        compelled_probability: p(i → j has this direction in the whole equivalence class), `[L, L]`.
        best: The class of the most probable graph. `classes[0]` is the most probable class: it may have more graphs.
        classes: The smallest set of classes that carries 95 % of the mass, the most probable first.
        dags: Graphs that stand for the posterior, `[G, L, L]`: all with notable mass, or draws.
        weights: Their probabilities, `[G]`, sum 1.
        log_marginal_likelihood: $\log \sum_G p(G)\, e^{score(G)}$ in nats; None where only ratios are known.
        score: How graphs were scored.
        method: How the sum over graphs was taken.
        n_samples: Rows behind the scores.
        n_independent: Independent ones among them (groups), the n of BIC.
        diagnostics: Of Monte Carlo: effective sample sizes, agreement of chains; empty where sums are exact.
    """

    nodes: tuple[str, ...]
    edge_probability: np.ndarray
    compelled_probability: np.ndarray
    best: np.ndarray
    classes: tuple[WeighedClass, ...]
    dags: np.ndarray
    weights: np.ndarray
    log_marginal_likelihood: float | None
    score: Score
    method: Method
    n_samples: int
    n_independent: int
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @property
    def adjacency_probability(self) -> np.ndarray:
        """p(i and j are joined), symmetric `[L, L]`."""
        return self.edge_probability + self.edge_probability.T
