"""Whether the true graph and the true p(N) come out, once nodes are aligned with factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from inference.evaluation.alignment import Alignment, align
from inference.graphs.comparison import GraphScores, compare, permute_nodes
from inference.graphs.cpdag import cpdag
from inference.graphs.dags import MOST_NODES
from inference.graphs.exact_search import ScoredClasses, score_classes
from inference.graphs.mixture_likelihood import log_likelihood_ratio

__all__ = ["Effort", "NamedClusters", "Truth", "divergence", "graph_recovery"]


@dataclass(frozen=True)
class Effort:
    """How long may be searched; the defaults stay below a second.

    Attributes:
        search: Most nodes for which all equivalence classes are scored, at most 5 (then some tens of seconds).
        search_at_random: Most nodes for which they are, too, when the clusters are named at random.
        n_draws: Number of random labellings.
    """

    search: int = 4
    search_at_random: int = 3
    n_draws: int = 20

    @classmethod
    def thorough(cls) -> Effort:
        """All that can be done."""
        return cls(search=MOST_NODES, search_at_random=MOST_NODES - 1)


@dataclass(frozen=True)
class Truth:
    """What is known of the distribution of the factors.

    Attributes:
        joint: True p(N), one axis per factor, or None.
        adjacency: True graph, row = cause, column = effect, in the order of the factors, or None.
    """

    joint: np.ndarray | None = None
    adjacency: np.ndarray | None = None


@dataclass(frozen=True)
class NamedClusters:
    """A fit as graphs see it.

    Attributes:
        responsibilities: `[n, C]`.
        outcomes: Number of outcomes of each node.
        joint: p(N), `[C_1, ..., C_L]`.
        adjacency: Learned edges, `[L, L]`; None where the model has no graph.
    """

    responsibilities: np.ndarray
    outcomes: tuple[int, ...]
    joint: np.ndarray
    adjacency: np.ndarray | None

    def named_by(self, cell_of: np.ndarray) -> NamedClusters:
        """The same clusters under other names: cluster c becomes cell `cell_of[c]`. Its graph is no more one."""
        cluster = np.argsort(cell_of)
        joint = self.joint.reshape(-1)[cluster].reshape(self.joint.shape)
        return NamedClusters(self.responsibilities[:, cluster], self.outcomes, joint, self.adjacency)


def graph_recovery(
    responsibilities: np.ndarray,
    joint: np.ndarray,
    adjacency: np.ndarray | None,
    factors: Mapping[str, np.ndarray],
    levels: Sequence[int],
    truth: Truth,
    generator: np.random.Generator,
    effort: Effort,
    weights: np.ndarray | None = None,
) -> dict[str, Any] | None:
    """Compare the graph and p(N) of a fit with the true ones.

    Args:
        responsibilities: q(N|X), `[n, C]`.
        joint: Learned p(N), `[C_1, ..., C_L]`.
        adjacency: Learned edges, `[L, L]`; None where the model has no graph.
        factors: Codes `[n]` of each factor; samples with a negative one play no part in the alignment.
        levels: Number of levels of each factor.
        truth: What is known.
        generator: Source of random labellings.
        effort: How long may be searched.
        weights: How much each sample counts in the search, `[n]` (`group_weights`); by default 1.

    Returns:
        `edge_strength` and `exact_search` (SHD, skeleton F1, v-structure F1, orientation, the CPDAG in the order of
        the factors; of the search also the gap to the next class and the number of ties), `random_labelling` (the mean
        SHD of the search when the clusters are named at random), `joint_kl` (learned, expected at random, and of the
        true labels' frequencies); entries without a truth, or beyond the effort, are None. None where nodes and
        factors do not correspond one to one.
    """
    fit = NamedClusters(responsibilities, joint.shape, joint, adjacency)
    known = np.all([codes >= 0 for codes in factors.values()], axis=0)
    alignment = _align(fit, factors, levels, known)
    if alignment is None:
        return None
    named = [fit.named_by(generator.permutation(joint.size)) for _ in range(effort.n_draws)]
    drawn = [(other, found) for other in named if (found := _align(other, factors, levels, known)) is not None]
    return {
        **_graphs(fit, alignment, drawn, truth.adjacency, effort, weights),
        "joint_kl": None if truth.joint is None else _joint_kl(fit, alignment, drawn, truth.joint, factors, known),
    }


def divergence(true: np.ndarray, other: np.ndarray) -> float:
    """KL(true ‖ other) = Σ p log(p / q) in nats; infinite where the other excludes what is true."""
    return max(float(rel_entr(true, other).sum()), 0.0)


def _align(
    fit: NamedClusters, factors: Mapping[str, np.ndarray], levels: Sequence[int], known: np.ndarray
) -> Alignment | None:
    cells = fit.responsibilities[known].argmax(1)
    return align(cells, fit.outcomes, {name: codes[known] for name, codes in factors.items()}, levels)


def _graphs(
    fit: NamedClusters,
    alignment: Alignment,
    drawn: Sequence[tuple[NamedClusters, Alignment]],
    adjacency: np.ndarray | None,
    effort: Effort,
    weights: np.ndarray | None,
) -> dict[str, Any]:
    if adjacency is None:
        return dict.fromkeys(("true_cpdag", "edge_strength", "exact_search", "random_labelling"))
    true, n_nodes = cpdag(adjacency), len(adjacency)
    found = _search(fit, weights) if n_nodes <= effort.search else None
    at_random = list(_shd_at_random(drawn, true, weights)) if n_nodes <= effort.search_at_random else []
    return {
        "true_cpdag": true.tolist(),
        "edge_strength": None if fit.adjacency is None else _scored(cpdag(fit.adjacency), alignment, true),
        "exact_search": None if found is None else _scored(found.best, alignment, true) | _certainty(found),
        "random_labelling": {"shd": float(np.mean(at_random))} if at_random else None,
    }


def _search(fit: NamedClusters, weights: np.ndarray | None) -> ScoredClasses:
    likelihood = log_likelihood_ratio(fit.responsibilities, fit.joint / fit.joint.sum())
    return score_classes(likelihood, fit.outcomes, weights=weights)


def _shd_at_random(
    drawn: Sequence[tuple[NamedClusters, Alignment]], true: np.ndarray, weights: np.ndarray | None
) -> Iterator[int]:
    for fit, alignment in drawn:
        yield _compared(_search(fit, weights).best, alignment, true)[1].shd


def _scored(found: np.ndarray, alignment: Alignment, true: np.ndarray) -> dict[str, Any]:
    aligned, scores = _compared(found, alignment, true)
    return {"cpdag": aligned.tolist(), **asdict(scores)}


def _compared(found: np.ndarray, alignment: Alignment, true: np.ndarray) -> tuple[np.ndarray, GraphScores]:
    aligned = permute_nodes(found, alignment.node)
    return aligned, compare(aligned, true)


def _certainty(found: ScoredClasses) -> dict[str, Any]:
    return {"bic_gap": found.gap, "n_tied": found.n_tied, "n_classes": len(found.bic)}


def _joint_kl(
    fit: NamedClusters,
    alignment: Alignment,
    drawn: Sequence[tuple[NamedClusters, Alignment]],
    true: np.ndarray,
    factors: Mapping[str, np.ndarray],
    known: np.ndarray,
) -> dict[str, float | None]:
    counts = np.zeros(true.shape)
    np.add.at(counts, tuple(codes[known] for codes in factors.values()), 1)
    at_random = [divergence(true, found.joint(other.joint)) for other, found in drawn]
    return {
        "learned": divergence(true, alignment.joint(fit.joint)),
        "random_labelling": float(np.mean(at_random)) if at_random else None,
        "true_labels": divergence(true, counts / counts.sum()),
    }
