"""How well nodes stand for known factors, and what chance alone would reach with the same clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import numpy as np
import scipy
from scipy.special import rel_entr

from causalpima.inference.findings.information import entropy, mutual_information
from causalpima.inference.graphs.dags import MOST_NODES, GraphScores, compare, cpdag, permute_nodes
from causalpima.inference.graphs.enumeration import ScoredClasses, score_classes
from causalpima.inference.graphs.hidden import log_likelihood_ratio

__all__ = [
    "Alignment",
    "Calibration",
    "Disentanglement",
    "Effort",
    "FactorReading",
    "NamedClusters",
    "NodeAccuracy",
    "RandomLabelling",
    "Truth",
    "align",
    "best_matching",
    "calibration",
    "contingency",
    "disentanglement",
    "divergence",
    "expected_calibration_error",
    "factors_of_nodes",
    "graph_recovery",
    "importance",
    "matched",
    "named_accuracy",
    "node_accuracy",
    "node_factor_accuracy",
    "random_labelling_baseline",
    "read_factor",
]


@dataclass(frozen=True)
class NodeAccuracy:
    """Accuracy of nodes read as factors, under the best one-to-one assignment.

    Attributes:
        accuracy: Share of samples with the right level, per factor.
        assignment: Index of the node that stands for each factor; None where the nodes did not suffice.
    """

    accuracy: Mapping[str, float]
    assignment: Mapping[str, int | None]

    @property
    def mean(self) -> float:
        """Mean over the factors."""
        return float(np.mean(list(self.accuracy.values())))

    @property
    def worst(self) -> float:
        """Lowest of the factors."""
        return min(self.accuracy.values())


@dataclass(frozen=True)
class RandomLabelling:
    """Node accuracy that the same clusters reach when it is left to chance which cluster is which cell.

    Attributes:
        mean: Expected `NodeAccuracy.mean`.
        worst: Expected `NodeAccuracy.worst`.
        mean_standard_error: Monte-Carlo standard error of `mean`.
        worst_standard_error: Monte-Carlo standard error of `worst`.
        accuracy: Per factor, the expected `NodeAccuracy.accuracy`.
    """

    mean: float
    worst: float
    mean_standard_error: float
    worst_standard_error: float
    accuracy: Mapping[str, float]


def node_accuracy(nodes: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray]) -> NodeAccuracy:
    """Accuracy of each factor as told by the node that stands for it.

    A pair of node and factor scores the share of samples that agree under the best one-to-one matching of outcomes to
    levels: where one side has more values than the other, the surplus counts as wrong. Nodes are then assigned to
    factors one to one so that the mean accuracy is highest. A factor that is left without a node scores what a
    constant guess would, the share of its most frequent level.

    Args:
        nodes: Outcome of each node, `[sample, node]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.

    Raises:
        ValueError: If a code is negative, or an outcome does not exist.
    """
    scores = _all_pairs(nodes, outcomes, factors)
    rows, columns = scipy.optimize.linear_sum_assignment(scores, maximize=True)
    node_of = {name: int(rows[columns == column][0]) for column, name in enumerate(factors)}
    return NodeAccuracy(
        accuracy={name: float(scores[node, column]) for column, (name, node) in enumerate(node_of.items())},
        assignment={name: node if node < len(outcomes) else None for name, node in node_of.items()},
    )


def node_factor_accuracy(nodes: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Accuracy of every node read as every factor, each under its best matching, `[node, factor]`.

    Args:
        nodes: Outcome of each node, `[sample, node]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.

    Raises:
        ValueError: If a code is negative, or an outcome does not exist.
    """
    return _all_pairs(nodes, outcomes, factors)[: len(outcomes)]


def random_labelling_baseline(
    cells: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    generator: np.random.Generator,
    n_draws: int = 1000,
) -> RandomLabelling:
    """Expected node accuracy of the found clusters when each is given a cell at random, all distinct.

    Every draw is scored as in `node_accuracy`, with its best assignment and matchings. Chance is far from 1/2 for
    binary factors: about 0.76 (mean) and 0.64 (worst) for clean clusters of the circles.

    Args:
        cells: Found cell of each sample, row-major over the nodes' outcomes, `[sample]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.
        generator: Source of the labellings.
        n_draws: Number of labellings, at least 2; the standard errors in the result tell whether they suffice.

    Raises:
        ValueError: If a code is negative.
    """
    found, clusters = np.unique(cells, return_inverse=True)
    n_cells = int(np.prod(outcomes))
    labellings = np.stack([generator.permutation(n_cells)[: len(found)] for _ in range(n_draws)])
    scores = _pair_scores(labellings, outcomes, _level_counts(clusters, factors))
    assigned = np.array([_assigned(score) for score in scores])
    mean, worst = assigned.mean(axis=1), assigned.min(axis=1)
    errors = [float(values.std(ddof=1) / n_draws**0.5) for values in (mean, worst)]
    accuracy = dict(zip(factors, assigned.mean(axis=0).tolist(), strict=True))
    return RandomLabelling(float(mean.mean()), float(worst.mean()), errors[0], errors[1], accuracy)


def _assigned(scores: np.ndarray) -> np.ndarray:
    """Score of every factor, `[factor]`, with the node that is assigned to it; scores are `[node, factor]`."""
    rows, columns = scipy.optimize.linear_sum_assignment(scores, maximize=True)
    values: np.ndarray = scores[rows, columns][np.argsort(columns)]
    return values


def contingency(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Count the samples with each pair of codes, `[row code, column code]`.

    Raises:
        ValueError: If a code is negative.
    """
    lowest = min(rows.min(), columns.min())
    if lowest < 0:
        raise ValueError(f"codes: expected none below 0, got {lowest}; leave out samples with unknown factors")
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    return np.bincount(np.ravel_multi_index((rows, columns), shape), minlength=shape[0] * shape[1]).reshape(shape)


def best_matching(table: np.ndarray) -> float:
    """Largest total of entries that a one-to-one matching of rows to columns can pick (the Hungarian method)."""
    return float(table[scipy.optimize.linear_sum_assignment(table, maximize=True)].sum())


def _all_pairs(nodes: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray]) -> np.ndarray:
    cells = np.ravel_multi_index(tuple(nodes.T), tuple(outcomes))
    found, clusters = np.unique(cells, return_inverse=True)
    return _pair_scores(found[None], outcomes, _level_counts(clusters, factors))[0]


def _level_counts(clusters: np.ndarray, factors: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return [contingency(clusters, codes) for codes in factors.values()]


def _pair_scores(labellings: np.ndarray, outcomes: Sequence[int], level_counts: Sequence[np.ndarray]) -> np.ndarray:
    """Best matched share of every pair, `[draw, node, factor]`, with constant nodes added until each factor has one.

    Args:
        labellings: Cell that each cluster stands for, `[draw, cluster]`.
        outcomes: Number of outcomes of each node.
        level_counts: Per factor, number of samples `[cluster, level]`.
    """
    sizes = [*outcomes, *[1] * (len(level_counts) - len(outcomes))]
    labels = np.unravel_index(labellings, sizes)
    scores = [_matched_counts(np.eye(size)[node], level_counts) for size, node in zip(sizes, labels, strict=True)]
    return np.stack(scores, axis=1) / level_counts[0].sum()


def _matched_counts(one_hot: np.ndarray, level_counts: Sequence[np.ndarray]) -> np.ndarray:
    """Best matched counts `[draw, factor]` of one node, whose outcome of each cluster is `[draw, cluster, outcome]`."""
    tables = [one_hot.swapaxes(1, 2) @ counts for counts in level_counts]
    return np.array([[best_matching(table) for table in draws] for draws in tables]).T


# Accuracy of nodes under the very names of their outcomes, without any matching.
#
# Where labels or a person named the clusters, a score under the best assignment would hide names that are swapped:
#
# $$\mathrm{acc}_\ell = \frac{1}{n} \sum_n 1[\text{name of the outcome of node } \ell = \text{level of its factor}]$$


_N_DRAWS = 300

Names = Sequence[str]


def factors_of_nodes(
    labelling: Mapping[str, Any] | None, outcome_names: Mapping[str, Names], levels: Mapping[str, Names]
) -> dict[str, str]:
    """The factor that each named node corresponds to; nodes without one are left out.

    Of labels, it is the variable that they were read from. Of names, it is the factor that the node bears the name of,
    else the only one with the same set of levels. Either way some outcome must be called as a level is.

    Args:
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`), or None.
        outcome_names: Names of the outcomes per node.
        levels: Names of the levels per factor.
    """
    labelling = labelling or {}
    found = {node: _factor_of(node, labelling, outcome_names, levels) for node in labelling.get("named_nodes", ())}
    return {
        node: factor
        for node, factor in found.items()
        if factor is not None and set(outcome_names[node]) & set(levels[factor])
    }


def _factor_of(
    node: str, labelling: Mapping[str, Any], outcome_names: Mapping[str, Names], levels: Mapping[str, Names]
) -> str | None:
    variables = (labelling.get("details") or {}).get("variables") or {}
    says = {"labels": variables.get(node), "names": _of_names(node, outcome_names, levels)}
    factor = says.get(labelling.get("source", "none"))
    return factor if factor in levels and node in outcome_names else None


def _of_names(node: str, outcome_names: Mapping[str, Names], levels: Mapping[str, Names]) -> str | None:
    if node in levels:
        return node
    alike = [factor for factor, names in levels.items() if set(names) == set(outcome_names.get(node, ()))]
    return alike[0] if len(alike) == 1 else None


def named_accuracy(
    cells: np.ndarray,
    outcome_names: Mapping[str, Names],
    factors: Mapping[str, np.ndarray],
    levels: Mapping[str, Names],
    factor_of: Mapping[str, str],
    generator: np.random.Generator,
) -> dict[str, Any]:
    """Score nodes as they are named; an outcome that no level is called by is wrong.

    Args:
        cells: Cell of each sample, row-major over the nodes' outcomes, `[n]`.
        outcome_names: Names of the outcomes per node, all nodes in order.
        factors: Codes `[n]` of each factor, none negative.
        levels: Names of the levels per factor.
        factor_of: Per node, its factor (`factors_of_nodes`).
        generator: Source of the random names.

    Returns:
        `named_accuracy` {node: value}, `named_accuracy_worst`, and `named_accuracy_random`, the expected worst where it
        is left to chance which cluster bears which names; None where no node has a factor.
    """
    if not factor_of:
        return {"named_accuracy": {}, "named_accuracy_worst": None, "named_accuracy_random": None}
    pairs = [(outcome_names[node], factors[name], levels[name]) for node, name in factor_of.items()]
    shape = tuple(len(names) for names in outcome_names.values())
    outcome = dict(zip(outcome_names, np.unravel_index(np.arange(prod(shape)), shape), strict=True))
    hits = np.stack([_hits(cells, outcome[node], *pair) for node, pair in zip(factor_of, pairs, strict=True)])
    clusters = np.arange(prod(shape))
    accuracy = hits[:, clusters, clusters].sum(1) / len(cells)
    drawn = [hits[:, clusters, generator.permutation(len(clusters))].sum(1).min() for _ in range(_N_DRAWS)]
    return {
        "named_accuracy": dict(zip(factor_of, accuracy.tolist(), strict=True)),
        "named_accuracy_worst": float(accuracy.min()),
        "named_accuracy_random": float(np.mean(drawn) / len(cells)),
    }


def _hits(cells: np.ndarray, outcome: np.ndarray, names: Names, codes: np.ndarray, levels: Names) -> np.ndarray:
    """Samples of each cluster that are right if it bears the names of each cell, `[cluster, cell]`."""
    table = np.zeros((len(outcome), len(levels)))
    np.add.at(table, (cells, codes), 1)
    is_called = np.array([[name == level for name in names] for level in levels], dtype=float)
    return table @ is_called[:, outcome]


# Which node is which factor, and which outcome which level, where the two correspond one to one.


@dataclass(frozen=True)
class Alignment:
    """The best one-to-one reading of nodes as factors.

    Attributes:
        node: Per factor, the index of its node, `[F]`.
        outcome: Per factor and level, the outcome of its node.
    """

    node: tuple[int, ...]
    outcome: tuple[tuple[int, ...], ...]

    def joint(self, joint: np.ndarray) -> np.ndarray:
        """p(N) as a distribution of the factors: `[C_1, ..., C_L]` to `[level_1, ..., level_F]`."""
        return joint.transpose(self.node)[np.ix_(*self.outcome)]


def align(
    cells: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray], levels: Sequence[int]
) -> Alignment | None:
    """Nodes to factors so that mean accuracy is highest, then outcomes to levels so that most samples agree.

    Args:
        cells: Cell of each sample, row-major over the nodes' outcomes, `[sample]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.
        levels: Number of levels of each factor.

    Returns:
        The alignment; None where there are not as many nodes as factors, or a node has not as many outcomes as its
        factor has levels.
    """
    if len(outcomes) != len(levels):
        return None
    nodes = np.stack(np.unravel_index(cells, tuple(outcomes)), axis=1)
    assignment = node_accuracy(nodes, outcomes, factors).assignment
    node = tuple(index for index in assignment.values() if index is not None)
    if [outcomes[index] for index in node] != list(levels):
        return None
    pairs = zip(node, factors.values(), levels, strict=True)
    return Alignment(node, tuple(_outcome_of_level(nodes[:, index], codes, size) for index, codes, size in pairs))


def _outcome_of_level(node: np.ndarray, codes: np.ndarray, size: int) -> tuple[int, ...]:
    table = np.zeros((size, size))
    found = contingency(codes, node)
    table[: found.shape[0], : found.shape[1]] = found
    return tuple(int(outcome) for outcome in scipy.optimize.linear_sum_assignment(table, maximize=True)[1])


# Whether every node stands for one factor, and every factor for one node.
#
# The importance of node i for factor j is the share of what there is to know of the factor that the node tells,
# $R_{ij} = I(N_i; F_j) / H(F_j)$. With its rows and columns as shares, DCI (Eastwood and Williams 2018) is
#
# * disentanglement $\sum_i \rho_i (1 - H_F(R_{i\cdot}))$, $\rho_i = \sum_j R_{ij} / \sum_{ij} R_{ij}$, entropies in
#   units of log F: 1 where each node tells of one factor only;
# * completeness $\frac{1}{F} \sum_j (1 - H_L(R_{\cdot j}))$, in units of log L: 1 where one node tells of each factor;
# * informativeness $\frac{1}{F} \sum_j I(N_1, ..., N_L; F_j) / H(F_j)$: 1 where the nodes together tell all factors.
#
# The original takes importances from trained classifiers; those of discrete nodes need none. What two nodes tell of a
# factor only together counts for informativeness alone. The gap (after MIG, Chen et al. 2018) of a factor is its
# largest $R_{ij}$ minus the second one.


@dataclass(frozen=True)
class Disentanglement:
    """How the nodes share the factors between them; all in [0, 1], 1 is best.

    Attributes:
        disentanglement: Each node tells of one factor only.
        completeness: Each factor is told by one node only.
        informativeness: All nodes together tell the factors.
        gap: Per factor, what the first node tells of it beyond the second, in units of the factor's entropy.
        random: Expected disentanglement, completeness and mean gap of the same clusters, named at random.
    """

    disentanglement: float
    completeness: float
    informativeness: float
    gap: Mapping[str, float]
    random: Mapping[str, float]


def disentanglement(
    cells: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    generator: np.random.Generator,
    n_draws: int = 300,
) -> Disentanglement:
    """Score the nodes of these cells.

    Args:
        cells: Cell of each sample, row-major over the nodes' outcomes, `[sample]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.
        generator: Source of the random labellings.
        n_draws: Number of them.
    """
    n_cells = int(np.prod(outcomes))
    counts = [_padded(contingency(cells, codes), n_cells) for codes in factors.values()]
    labellings = np.stack([np.arange(n_cells), *(generator.permutation(n_cells) for _ in range(n_draws))])
    shares = importance(labellings, outcomes, counts)
    scores = {"disentanglement": _disentanglement(shares), "completeness": _completeness(shares)}
    gaps = _gaps(shares)
    together = np.array([float(_share_told(table)) for table in counts])
    return Disentanglement(
        **{name: float(values[0]) for name, values in scores.items()},
        informativeness=float(together.mean()),
        gap=dict(zip(factors, gaps[0].tolist(), strict=True)),
        random={
            **{name: float(values[1:].mean()) for name, values in scores.items()},
            "gap_mean": float(gaps[1:].mean()),
        },
    )


def importance(labellings: np.ndarray, outcomes: Sequence[int], counts: Sequence[np.ndarray]) -> np.ndarray:
    """I(N_i; F_j) / H(F_j), `[draw, node, factor]`.

    Args:
        labellings: Cell that each cluster stands for, `[draw, cluster]`.
        outcomes: Number of outcomes of each node.
        counts: Per factor, number of samples `[cluster, level]`.
    """
    nodes = np.unravel_index(labellings, tuple(outcomes))
    one_hot = [np.eye(size)[node].swapaxes(1, 2) for size, node in zip(outcomes, nodes, strict=True)]
    return np.stack([np.stack([_share_told(node @ table) for table in counts], axis=-1) for node in one_hot], axis=1)


def _share_told(tables: np.ndarray) -> np.ndarray:
    """Mutual information of rows and columns in units of the entropy of the columns; 0 where that is 0."""
    total = entropy(tables.sum(-2))
    return mutual_information(tables) / np.where(total > 0, total, 1.0)


def _padded(table: np.ndarray, n_rows: int) -> np.ndarray:
    return np.pad(table, ((0, n_rows - len(table)), (0, 0)))


def _disentanglement(shares: np.ndarray) -> np.ndarray:
    weight = shares.sum(-1)
    total = weight.sum(-1, keepdims=True)
    return (weight / np.where(total > 0, total, 1.0) * _concentration(shares)).sum(-1)


def _completeness(shares: np.ndarray) -> np.ndarray:
    told = shares.sum(-2) > 0
    return (told * _concentration(shares.swapaxes(-1, -2))).mean(-1)


def _concentration(shares: np.ndarray) -> np.ndarray:
    """1 - entropy along the last axis in units of its maximum; 1 where there is one entry only."""
    n = shares.shape[-1]
    return 1 - entropy(shares) / np.log(n) if n > 1 else np.ones(shares.shape[:-1])


def _gaps(shares: np.ndarray) -> np.ndarray:
    """The largest along the nodes minus the second (0 where there is none), `[draw, factor]`."""
    ordered = np.sort(shares, axis=1)
    return ordered[:, -1] - (ordered[:, -2] if shares.shape[1] > 1 else 0.0)


# Whether the true graph and the true p(N) come out, once nodes are aligned with factors.


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


# Whether the probability of the most probable cell is how often it is right.
#
# $$\mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \overline{\text{right}}_b - \overline{\text{confidence}}_b \right|$$
#
# over bins of the confidence $\max_c q(c \mid x)$ (Guo et al. 2017). Clusters are matched to true cells first, one to
# one, so that most samples agree.
#
# **One factor** seldom has as many levels as there are clusters. Where it has no more, every cluster is read as its
# most
# frequent level, and the confidence is $\max_l \sum_{c \to l} q(c \mid x)$: clusters that tell the factor and more are
# no
# worse for that. Where it has more, every level is read as the cluster that most of its other samples are in (without
# the
# sample itself: a level of one sample proves nothing), and the confidence is that of the most probable cluster:
# clusters
# that join levels are no worse for that either.


_N_BINS = 15
_N_CALIBRATION_DRAWS = 200
_FEWEST = 10


@dataclass(frozen=True)
class Calibration:
    """Confidence against truth.

    Attributes:
        ece: Expected calibration error in 15 bins of equal width.
        ece_equal_mass: The same in up to 15 bins of equally many samples, at least 10 each; ties share a bin.
        ece_if_calibrated: What `ece` would be on average if q(N|X) were right: samples are finite. No fit does better
            but by luck.
        ece_95_if_calibrated: What `ece` would exceed in one of twenty cases if q(N|X) were right.
        confidence: Mean confidence per bin of equal mass.
        accuracy: Share of right samples per bin of equal mass.
        count: Samples per bin of equal mass.
    """

    ece: float
    ece_equal_mass: float
    ece_if_calibrated: float
    ece_95_if_calibrated: float
    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray


def calibration(responsibilities: np.ndarray, true_cells: np.ndarray, generator: np.random.Generator) -> Calibration:
    """Compare q(N|X) with the true cells.

    Args:
        responsibilities: `[n, C]`.
        true_cells: Codes `[n]`, none negative.
        generator: Source of the outcomes behind `ece_if_calibrated`.
    """
    right = matched(responsibilities.argmax(1), true_cells) == true_cells
    return _calibration(responsibilities.max(1), right, generator)


def _calibration(confidence: np.ndarray, right: np.ndarray, generator: np.random.Generator) -> Calibration:
    confidence = np.minimum(confidence.astype(np.float64), 1.0)
    equal_width = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    equal_mass = _equal_mass(confidence)
    drawn = generator.random((_N_CALIBRATION_DRAWS, len(confidence))) < confidence
    of_right = [expected_calibration_error(confidence, draw, equal_width) for draw in drawn]
    means = [np.bincount(equal_mass, values) for values in (confidence, right)]
    count = np.bincount(equal_mass)
    kept = count > 0
    return Calibration(
        ece=expected_calibration_error(confidence, right, equal_width),
        ece_equal_mass=expected_calibration_error(confidence, right, equal_mass),
        ece_if_calibrated=float(np.mean(of_right)),
        ece_95_if_calibrated=float(np.quantile(of_right, 0.95)),
        confidence=means[0][kept] / count[kept],
        accuracy=means[1][kept] / count[kept],
        count=count[kept],
    )


@dataclass(frozen=True)
class FactorReading:
    """Clusters read as the levels of one factor, or levels as clusters where there are more of them.

    Attributes:
        accuracy: Share of samples that agree.
        guess: What the most frequent level (or cluster) alone would reach.
        calibration: Confidence against agreement; None where no sample can be judged.
    """

    accuracy: float
    guess: float
    calibration: Calibration | None


def read_factor(responsibilities: np.ndarray, codes: np.ndarray, generator: np.random.Generator) -> FactorReading:
    """Compare q(N|X) with one factor.

    Args:
        responsibilities: `[n, C]`.
        codes: Levels `[n]`, none negative.
        generator: Source of the outcomes behind `ece_if_calibrated`.
    """
    cells = np.unique(responsibilities.argmax(1), return_inverse=True)[1].reshape(-1)
    levels = np.unique(codes, return_inverse=True)[1].reshape(-1)
    table = contingency(cells, levels)
    if table.shape[1] <= table.shape[0]:
        confidence, right = _as_levels(responsibilities, codes)
        counts = table.sum(0)
    else:
        confidence, right = _as_clusters(responsibilities.max(1), table, cells, levels)
        counts = table.sum(1)
    made = _calibration(confidence, right, generator) if len(right) else None
    accuracy = float(right.mean()) if len(right) else float("nan")
    return FactorReading(accuracy, float(counts.max() / counts.sum()), made)


def _as_levels(responsibilities: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and agreement of samples whose cluster, of others too, is read as its most frequent level."""
    n_cells, cells = responsibilities.shape[1], responsibilities.argmax(1)
    table = np.zeros((n_cells, int(codes.max()) + 1))
    np.add.at(table, (cells, codes), 1)
    # A cluster without samples says no level: its mass stays a level of its own, which is never right.
    stands_for = np.where(table.any(1), table.argmax(1), table.shape[1])
    mass = responsibilities @ np.eye(table.shape[1] + 1)[stands_for]
    known = table[cells].sum(1) > 1
    return mass.max(1)[known], (mass.argmax(1) == codes)[known]


def _as_clusters(
    confidence: np.ndarray, table: np.ndarray, cells: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same of samples whose level is read as the cluster of its other samples, as far as it has others."""
    others = table[:, levels].T - np.eye(len(table), dtype=int)[cells]
    known = others.any(1)
    return confidence[known], (others.argmax(1) == cells)[known]


def expected_calibration_error(confidence: np.ndarray, right: np.ndarray, bins: np.ndarray) -> float:
    """Σ_b |Σ_{n in b} (right_n - confidence_n)| / n.

    Args:
        confidence: Probability that the guess is right, `[n]`.
        right: Whether it is, `[n]`.
        bins: Number of the bin of each sample, `[n]`.
    """
    return float(np.abs(np.bincount(bins, right - confidence)).sum() / len(confidence))


def matched(cells: np.ndarray, true_cells: np.ndarray) -> np.ndarray:
    """The true cell that each sample's cluster stands for, `[n]`; -1 where there are more clusters than true cells.

    Args:
        cells: Most probable cell, `[n]`.
        true_cells: Codes `[n]`.
    """
    table = contingency(cells, true_cells)
    stands_for = np.full(len(table), -1)
    rows, columns = scipy.optimize.linear_sum_assignment(table, maximize=True)
    stands_for[rows] = columns
    return stands_for[cells]


def _equal_mass(confidence: np.ndarray) -> np.ndarray:
    """Bins between quantiles; equal confidences share a bin."""
    n_bins = min(_N_BINS, max(1, len(confidence) // _FEWEST))
    edges = np.quantile(confidence, np.arange(1, n_bins) / n_bins)
    return np.searchsorted(edges, confidence, side="right")
