r"""Likelihood of a graph with targets, over environments, for nodes that are seen only through a mixture.

With l_nc = p(x_n | cell c) fixed and e(n) the environment of sample n, by expectation maximisation

$$\log L(G, T) = \max_\theta \sum_n \log \sum_c p_\theta(c \mid e(n))\, l_{nc},$$

where p(c | e) is a product over nodes of tables that all environments share which leave the node alone, and of tables
of its own in each environment that is upon it. As for one environment (`mixture_likelihood`), clusters are never taken
for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Literal, NamedTuple

import numpy as np

from inference.graphs.mixture_likelihood import count_parameters
from inference.graphs.tables import parents_of, shares_given

__all__ = ["HiddenSamples", "InterventionKind", "environment_bic", "factorised", "fit_environments"]

InterventionKind = Literal["do", "soft"]

_TOLERANCE = 1e-6
_MOST_STEPS = 500


class HiddenSamples(NamedTuple):
    """Samples of environments whose nodes are hidden.

    Attributes:
        log_likelihood: log p(x_n | c) up to a constant per sample, `[n, C]`.
        codes: Environment of each sample, `[n]`; 0 is without intervention.
        outcomes: Outcomes per node.
    """

    log_likelihood: np.ndarray
    codes: np.ndarray
    outcomes: tuple[int, ...]

    @property
    def sizes(self) -> np.ndarray:
        """Samples of every environment, `[1 + E]`."""
        return np.bincount(self.codes)


def environment_bic(samples: HiddenSamples, dag: np.ndarray, targets: np.ndarray, kind: InterventionKind) -> float:
    """Maximum log-likelihood less 1/2 log n for every free number, n being the samples that its table is made of.

    Args:
        samples: The samples.
        dag: `[L, L]`, row = cause, column = effect.
        targets: Node of every environment but the first, `[E]`.
        kind: What an intervention does.
    """
    value, _ = fit_environments(samples, dag, targets, kind)
    upon = np.concatenate([[-1], targets])
    for node in range(len(dag)):
        shared, own = _n_free(samples.outcomes, dag, node), _n_free(samples.outcomes, _cut(dag, node, kind), node)
        value -= 0.5 * shared * log(samples.sizes[upon != node].sum())
        value -= 0.5 * own * sum(log(size) for size in samples.sizes[upon == node])
    return value


def fit_environments(
    samples: HiddenSamples, dag: np.ndarray, targets: np.ndarray, kind: InterventionKind
) -> tuple[float, np.ndarray]:
    """Maximum of log L, and p(c | e) there, `[1 + E, C_1, ..., C_L]`; each step of EM raises log L."""
    highest = samples.log_likelihood.max(1, keepdims=True)
    weight = np.exp(samples.log_likelihood - highest)
    parts = [weight[samples.codes == code] for code in range(len(targets) + 1)]
    joint = np.full((len(parts), weight.shape[1]), 1 / weight.shape[1])
    before = -np.inf
    for _ in range(_MOST_STEPS):
        evidence = [part @ share for part, share in zip(parts, joint, strict=True)]
        now = float(sum(np.log(each).sum() for each in evidence))
        if now - before <= _TOLERANCE:
            break
        before = now
        counts = np.stack([s * ((1 / e) @ w) for w, s, e in zip(parts, joint, evidence, strict=True)])
        joint = factorised(counts.reshape(-1, *samples.outcomes), dag, targets, kind).reshape(joint.shape)
    return now + float(highest.sum()), joint.reshape(-1, *samples.outcomes)


def factorised(counts: np.ndarray, dag: np.ndarray, targets: np.ndarray, kind: InterventionKind) -> np.ndarray:
    r"""p(c | e) of the highest likelihood for counts that are seen, `[1 + E, C_1, ..., C_L]`.

    Every factor is the share of its counts over the environments that leave its node alone; that of a target, the share
    in its environment. Uniform where a configuration of the parents never occurs in these.

    Args:
        counts: m_e, `[1 + E, C_1, ..., C_L]`; the first is without intervention.
        dag: `[L, L]`, row = cause, column = effect.
        targets: Node of every environment but the first, `[E]`.
        kind: What an intervention does.
    """
    joint = np.ones_like(counts)
    upon = np.concatenate([[-1], targets])
    for node in range(len(dag)):
        joint[upon != node] *= shares_given(counts[upon != node].sum(0), len(dag), node, parents_of(dag, node))
        for e in np.flatnonzero(upon == node):
            joint[e] *= shares_given(counts[e], len(dag), node, parents_of(_cut(dag, node, kind), node))
    return joint


def _cut(dag: np.ndarray, node: int, kind: InterventionKind) -> np.ndarray:
    """The graph under an intervention upon the node."""
    if kind == "soft":
        return dag
    without = dag.copy()
    without[:, node] = 0
    return without


def _n_free(outcomes: Sequence[int], dag: np.ndarray, node: int) -> int:
    """Free numbers of the table of one node."""
    alone = np.zeros_like(dag)
    alone[:, node] = dag[:, node]
    return count_parameters(alone, outcomes) - sum(size - 1 for k, size in enumerate(outcomes) if k != node)
