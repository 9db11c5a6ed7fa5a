"""The posterior over graphs of a fit, and its plain form in `summary.json` and `inference.graph`'s JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from causalpima.inference.clusters.labels import allowed_cells
from causalpima.inference.data.roles import ROWS_PER_CELL, observational_rows
from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.verdicts import UNDECIDED_NATS
from causalpima.inference.graphs.dags import GraphKnowledge, edge_text, graph_knowledge
from causalpima.inference.graphs.enumeration import (
    EdgeLogOdds,
    ScoredClasses,
    counts_are_quick,
    is_quick,
    score_classes,
)
from causalpima.inference.graphs.hidden import group_weights, log_likelihood_ratio, with_observed
from causalpima.inference.graphs.learners import POSTHOC, learn_graph
from causalpima.inference.graphs.posterior import MOST_SCORED_NODES, NodeSamples, classes_posterior, mixture_posterior
from causalpima.inference.graphs.scores import GraphPosterior, Score

__all__ = [
    "MOST_LISTED_CLASSES",
    "SENSITIVITY_SCORES",
    "Verdict",
    "check_groups",
    "compared",
    "declared_knowledge",
    "described_class",
    "graph_posterior",
    "graph_search",
    "learned_summary",
    "node_likelihood",
    "node_samples",
    "node_samples_of_file",
    "observational_rows_of_file",
    "plain_posterior",
    "score_text",
    "sensitivity",
    "verdict",
    "with_factors",
]


# What the samples of a fit tell of its nodes: the likelihood behind every score of a graph.


def node_samples(fit: FitArrays) -> NodeSamples | None:
    """The training samples without intervention, with what labels tell of them; None where there are none.

    Args:
        fit: A finished fit.
    """
    facts = _Facts(fit.split, fit.environment, fit.groups, fit.node_labels)
    return _samples(fit.graph.node_names, fit.responsibilities, fit.graph.log_joint, facts)


def node_samples_of_file(posterior: xr.DataTree) -> NodeSamples | None:
    """The same of a `posterior.nc`, as `read_posterior` reads it."""
    variational, constant = posterior["variational"].dataset, posterior["constant_data"].dataset
    facts = _Facts(_split(constant), *(_of(constant, name) for name in ("environment", "group", "node_label")))
    nodes = tuple(map(str, variational["node_from"].to_numpy()))
    return _samples(nodes, variational["responsibilities"].to_numpy(), variational["log_joint"].to_numpy(), facts)


def check_groups(posterior: xr.DataTree, summary: Mapping[str, Any]) -> None:
    """Refuse a file of an older version without the groups: replicates would count as independent samples.

    Args:
        posterior: A `posterior.nc`.
        summary: Its `summary.json`.

    Raises:
        ValueError: The run had groups, and the file has none.
    """
    if "group" not in posterior["constant_data"] and (summary.get("clusters") or {}).get("n_groups") is not None:
        raise ValueError(
            "posterior.nc: expected the groups of the samples, got a file of an older version of this program; fit "
            "again"
        )


def observational_rows_of_file(posterior: xr.DataTree) -> np.ndarray:
    """Which samples of a `posterior.nc` are training samples without intervention, bool `[n]`."""
    constant = posterior["constant_data"].dataset
    return observational_rows(_split(constant) == "train", _of(constant, "environment"))


def node_likelihood(
    responsibilities: np.ndarray, log_joint: np.ndarray, labels: np.ndarray | None = None
) -> np.ndarray:
    """log p(x_n, labels of n | c) less log p(x_n), `[n, C]`; -inf in cells that the labels of a sample rule out.

    Where a label contradicts what the modalities say beyond what numbers hold, the label alone counts.

    Args:
        responsibilities: q(N|X), `[n, C]`.
        log_joint: log p(N) that they were computed with, `[C_1, ..., C_L]`.
        labels: Outcome of each node, `[n, L]`, -1 where no label tells it; None: no labels.

    Raises:
        ValueError: Responsibilities that are no numbers.
    """
    joint = np.exp(log_joint.astype(np.float64))
    likelihood = log_likelihood_ratio(responsibilities, joint / joint.sum())
    if labels is None:
        return likelihood
    allowed = allowed_cells(labels, log_joint.shape)
    seen = np.where(allowed, likelihood, -np.inf)
    is_lost = ~np.isfinite(seen.max(1, keepdims=True))
    return np.where(is_lost & allowed, 0.0, seen)


class _Facts(NamedTuple):
    """Of every sample: the part it is in, its environment, its group, and outcomes of nodes by labels."""

    split: np.ndarray
    environment: np.ndarray | None
    groups: np.ndarray | None
    labels: np.ndarray | None


def _samples(
    nodes: tuple[str, ...], responsibilities: np.ndarray, log_joint: np.ndarray, facts: _Facts
) -> NodeSamples | None:
    rows = observational_rows(facts.split == "train", facts.environment)
    if not rows.any():
        return None
    labels, groups = (None if found is None else found[rows] for found in (facts.labels, facts.groups))
    likelihood = node_likelihood(responsibilities[rows], log_joint, labels)
    return NodeSamples(nodes, log_joint.shape, likelihood, group_weights(groups))


def _split(constant: xr.Dataset) -> np.ndarray:
    """`train`, `validation` or `test` per sample."""
    names: np.ndarray = constant["split_level"].to_numpy().astype(str)
    return names[constant["split"].to_numpy()]


def _of(constant: xr.Dataset, name: str) -> np.ndarray | None:
    return constant[name].to_numpy() if name in constant else None


MOST_LISTED_CLASSES = 100
"""So many classes of the set that carries 95 % of the mass are listed in files; their number is told."""


def graph_posterior(
    fit: FitArrays,
    knowledge: GraphKnowledge | None = None,
    score: Score | None = None,
    edge_log_odds: EdgeLogOdds = 0.0,
) -> GraphPosterior | None:
    """The posterior over the graphs of a fit; None where its nodes have no meaning, or no training sample counts.

    Args:
        fit: A finished fit.
        knowledge: What is known of the graph; by default what the configuration of the fit declares.
        score: BIC by default.
        edge_log_odds: Log-odds of every edge of a declared prior; 0: all possible graphs alike.

    Raises:
        ValueError: More nodes than can be scored, or BDeu without an equivalent sample size.
    """
    samples = node_samples(fit)
    if samples is None or not (fit.identifiability or {}).get("is_named", False):
        return None
    known = declared_knowledge(fit.attributes, samples.nodes) if knowledge is None else knowledge
    return mixture_posterior(samples, score or Score(), known, edge_log_odds)


def declared_knowledge(attributes: Mapping[str, Any], nodes: Sequence[str]) -> GraphKnowledge:
    """What the configuration of a fit declares of its graph.

    Args:
        attributes: Of the fit, or of its file: `config` has the settings as plain values.
        nodes: Names of the nodes.

    Raises:
        ValueError: Declarations that contradict each other.
    """
    from causalpima.inference.graphs.dags import KnowledgeConfig  # its package imports this one

    plain = (attributes.get("config") or {}).get("knowledge") or {}
    tiers = tuple(tuple(tier) for tier in plain.get("tiers", ()))
    others = {name: tuple(plain.get(name, ())) for name in ("forbid", "require", "designed")}
    return graph_knowledge(KnowledgeConfig(tiers=tiers, **others), nodes)


def plain_posterior(
    posterior: GraphPosterior,
    knowledge: GraphKnowledge,
    outcomes: Sequence[int],
    sensitivity: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A posterior as plain values (keys: docs/graph_posterior.md).

    Args:
        posterior: The posterior.
        knowledge: What was known of the graph.
        outcomes: Number of outcomes of each node.
        sensitivity: How much depends on the score (`graph_sensitivity`); None: it was not looked at.
    """
    listed = posterior.classes[:MOST_LISTED_CLASSES]
    return {
        "nodes": list(posterior.nodes),
        "edge_probability": posterior.edge_probability.tolist(),
        "adjacency_probability": posterior.adjacency_probability.tolist(),
        "compelled_probability": posterior.compelled_probability.tolist(),
        "cpdag": np.asarray(posterior.best, dtype=int).tolist(),
        "score": posterior.score.name,
        "equivalent_sample_size": posterior.score.equivalent_sample_size,
        "log_marginal_likelihood": posterior.log_marginal_likelihood,
        "classes": [{"cpdag": found.graph.astype(int).tolist(), "probability": found.probability} for found in listed],
        "n_classes": len(posterior.classes),
        "method": posterior.method,
        "n_samples": posterior.n_samples,
        "n_independent": posterior.n_independent,
        "too_few_samples": [
            [posterior.nodes[i], posterior.nodes[j]]
            for i, j in combinations(range(len(outcomes)), 2)
            if ROWS_PER_CELL * outcomes[i] * outcomes[j] > posterior.n_independent
        ],
        "knowledge": _plain_knowledge(knowledge),
        "sensitivity": None if sensitivity is None else dict(sensitivity),
        "diagnostics": dict(posterior.diagnostics),
    }


def _plain_knowledge(knowledge: GraphKnowledge) -> dict[str, list[str]]:
    """Edges that are not there, and edges that are, as text."""
    own = np.eye(len(knowledge.nodes), dtype=bool)
    return {
        name: [edge_text(knowledge.nodes[i], knowledge.nodes[j]) for i, j in np.argwhere(edges & ~own)]
        for name, edges in (("forbidden", knowledge.forbidden), ("required", knowledge.required))
    }


# How much a posterior over graphs depends on its score: BIC, and BDeu with equivalent sample sizes 1, 5, 10.


SENSITIVITY_SCORES = (Score(), Score("bdeu", 1.0), Score("bdeu", 5.0), Score("bdeu", 10.0))
"""Beside each other in every report of sensitivity."""

Verdict = Literal["none", "joined", "forward", "backward"]
"""No edge, one without a direction, i → j, j → i."""

_HALF = 0.5


def score_text(score: Score) -> str:
    """`BIC`, or `BDeu 5` with the equivalent sample size."""
    return "BIC" if score.equivalent_sample_size is None else f"BDeu {score.equivalent_sample_size:g}"


def sensitivity(
    samples: NodeSamples, knowledge: GraphKnowledge, known: GraphPosterior, edge_log_odds: EdgeLogOdds = 0.0
) -> dict[str, Any]:
    """The posterior by every score.

    Args:
        samples: The samples.
        knowledge: Which graphs are possible.
        known: The posterior by one of the scores, which is not computed again.
        edge_log_odds: The declared prior that it was computed with.

    Returns:
        As `compared` has it.
    """
    others = [score for score in SENSITIVITY_SCORES if score != known.score]
    found = [mixture_posterior(samples, score, knowledge, edge_log_odds) for score in others]
    return compared([known, *found])


def compared(posteriors: list[GraphPosterior]) -> dict[str, Any]:
    """Posteriors by several scores side by side.

    Returns:
        `scores`: per score (`score_text`), `edge_probability` and `compelled_probability` `[L, L]`; `changes`: pairs of
        nodes whose verdict is not the same by all of them.
    """
    ordered = sorted(posteriors, key=lambda found: found.score.equivalent_sample_size or 0.0)
    nodes = ordered[0].nodes
    return {
        "scores": {score_text(found.score): _tables(found) for found in ordered},
        "changes": [
            [nodes[i], nodes[j]]
            for i, j in combinations(range(len(nodes)), 2)
            if len({verdict(found, i, j) for found in ordered}) > 1
        ],
    }


def verdict(posterior: GraphPosterior, first: int, second: int) -> Verdict:
    """What is more probable than not of two nodes."""
    if posterior.adjacency_probability[first, second] <= _HALF:
        return "none"
    if posterior.compelled_probability[first, second] > _HALF:
        return "forward"
    return "backward" if posterior.compelled_probability[second, first] > _HALF else "joined"


def _tables(posterior: GraphPosterior) -> Mapping[str, list[list[float]]]:
    return {
        "edge_probability": np.asarray(posterior.edge_probability).tolist(),
        "compelled_probability": np.asarray(posterior.compelled_probability).tolist(),
    }


# Measured factors of a run as further nodes: their levels are known where the samples have a label.


def with_factors(samples: NodeSamples, posterior: xr.DataTree, factors: Sequence[str]) -> NodeSamples:
    """The nodes of a run with some of its known factors beside them (`with_observed`).

    Args:
        samples: What its file tells of the nodes (`node_samples_of_file`).
        posterior: The file, `posterior.nc`, as `read_posterior` reads it.
        factors: Names of factors that came with the data.

    Raises:
        ValueError: A factor that is not there, has one level, or is called like a node.
    """
    if not factors:
        return samples
    constant = posterior["constant_data"].dataset
    rows = observational_rows_of_file(posterior)
    codes = np.stack([_codes(constant, name, samples.nodes)[rows] for name in factors], axis=1)
    sizes = [constant.sizes[f"level_{name}"] for name in factors]
    likelihood = with_observed(samples.log_likelihood, codes, sizes)
    nodes, outcomes = (*samples.nodes, *factors), (*samples.outcomes, *sizes)
    return NodeSamples(nodes, outcomes, likelihood, samples.weights)


def _codes(constant: xr.Dataset, name: str, nodes: Sequence[str]) -> np.ndarray:
    known = [str(key).removeprefix("factor_") for key in constant.data_vars if str(key).startswith("factor_")]
    if name not in known:
        raise ValueError(
            f"factors: expected known factors of the run ({', '.join(known) or 'none'}), got {name}; fit with "
            f"--labels {name} if the data have it"
        )
    if name in nodes:
        raise ValueError(f"factors: expected factors besides the nodes, got {name}, which is one; leave it out")
    if constant.sizes[f"level_{name}"] < 2:
        raise ValueError(f"factors: expected two levels at least, got one of {name}; leave it out")
    codes: np.ndarray = constant[f"factor_{name}"].to_numpy()
    return codes


# The equivalence class of graphs over nodes that have a meaning, by exact search: an entry of a summary's `graph`.


def described_class(found: ScoredClasses, samples: NodeSamples) -> dict[str, Any]:
    """The best class by BIC on the likelihood of the mixture.

    Args:
        found: All classes, the best first.
        samples: What they were scored by.

    Returns:
        `cpdag`, row = cause, column = effect, 1 both ways where the direction is open (and what is known of the graph
        leaves it open); `node_names`; `gap_nats` to the next class; `near`, the others within 3 nats, the best first,
        each with `cpdag` and `behind_nats`; `score`, `bic`; `n_samples` and `n_independent`, the n of BIC: that of the
        groups where there are such.
    """
    return {
        "cpdag": found.best.tolist(),
        "node_names": list(samples.nodes),
        "gap_nats": found.gap,
        "near": _near(found),
        "score": "bic",
        "n_samples": len(samples.log_likelihood),
        "n_independent": samples.n_independent,
    }


def _near(found: ScoredClasses) -> list[dict[str, Any]]:
    behind = found.bic[0] - found.bic
    rivals = 1 + np.flatnonzero(behind[1:] < UNDECIDED_NATS)
    return [{"cpdag": found.graphs[rival].tolist(), "behind_nats": float(behind[rival])} for rival in rivals]


# The class and the posterior over graphs of a fit whose nodes have a meaning: entries of a summary's `graph`.
#
# Both rest on one pass over all classes of graphs where there are few; a run takes about a second for them at most, and
# what would take longer is left to `python -m inference.graph RUN`.


def graph_search(fit: FitArrays) -> dict[str, Any]:
    """`equivalence_class` and `posterior`, as far as they are quick; nothing for one node.

    Args:
        fit: A fit whose nodes are all identified: under other names of the clusters these are others.
    """
    samples = node_samples(fit)
    if samples is None or len(samples.nodes) < 2:
        return {}
    knowledge = declared_knowledge(fit.attributes, samples.nodes)
    if len(samples.nodes) > MOST_SCORED_NODES:
        return _by_counts(samples, knowledge)
    return _by_classes(samples, knowledge) if is_quick(samples.log_likelihood, samples.outcomes) else {}


def _by_classes(samples: NodeSamples, knowledge: GraphKnowledge) -> dict[str, Any]:
    found = score_classes(samples.log_likelihood, samples.outcomes, weights=samples.weights, knowledge=knowledge)
    posterior = classes_posterior(found, samples, knowledge)
    others = is_quick(samples.log_likelihood, samples.outcomes, len(SENSITIVITY_SCORES))
    compared = sensitivity(samples, knowledge, posterior) if others else None
    return {
        "equivalence_class": described_class(found, samples),
        "posterior": plain_posterior(posterior, knowledge, samples.outcomes, compared),
    }


def _by_counts(samples: NodeSamples, knowledge: GraphKnowledge) -> dict[str, Any]:
    if not counts_are_quick(samples.log_likelihood, samples.outcomes):
        return {}
    return {"posterior": plain_posterior(mixture_posterior(samples, Score(), knowledge), knowledge, samples.outcomes)}


# The graph that a classical learner finds on the nodes of a fit (`model.graph=posthoc:...`): an entry of a summary.
#
# Where it finds none, the summary says why instead, so that a learner that was asked for never stays away in silence.


_NOT_NAMED = (
    "the nodes have no names, and a graph between unnamed clusters means nothing; label nodes (--labels), or name the "
    "clusters afterwards (inference.name)"
)
_NO_SAMPLE = "no training sample is without intervention"
_NO_BLOCKS = "names left blocks of Z that are of no node, so that no node has a number of its own"


def learned_summary(fit: FitArrays, is_named: bool = True) -> dict[str, Any]:
    """`posthoc`: what the learner of the configuration finds; nothing without one, and for one node.

    Of samples without intervention that were trained on, every node has the outcome of the most probable cell, within
    what labels allow; a group counts once, for the cell with the largest sum over its samples. LiNGAM gets means of
    E[Z | X] instead, one number per node, and finds nothing where names left blocks of Z that are of no node.

    Args:
        fit: A fit.
        is_named: Whether all of its nodes are identified; the learner does not run otherwise.

    Returns:
        `posthoc`, or `posthoc_left_out` {`method`, `reason`} where the learner did not run.

    Raises:
        ValueError: causal-learn is not installed.
    """
    kind = ((fit.attributes.get("config") or {}).get("model") or {}).get("graph")
    if kind not in POSTHOC or len(fit.graph.node_names) < 2:
        return {}
    if not is_named:
        return _left_out(kind, _NOT_NAMED)
    values = _latents(fit) if kind == "posthoc:lingam" else _outcomes(fit)
    if values is None:
        return _left_out(kind, _NO_BLOCKS if _rows(fit).any() else _NO_SAMPLE)
    found = learn_graph(kind, values, declared_knowledge(fit.attributes, fit.graph.node_names))
    return {"posthoc": _plain(kind, found.graph, found.settings, found.conflicts, fit, len(values))}


def _left_out(kind: str, reason: str) -> dict[str, Any]:
    return {"posthoc_left_out": {"method": kind.removeprefix("posthoc:"), "reason": reason}}


def _plain(
    kind: str,
    graph: np.ndarray,
    settings: str,
    conflicts: tuple[tuple[int, int], ...],
    fit: FitArrays,
    n_samples: int,
) -> Mapping[str, Any]:
    names = fit.graph.node_names
    return {
        "method": kind.removeprefix("posthoc:"),
        "settings": settings,
        "node_names": list(names),
        "cpdag": graph.tolist(),
        "conflicts": [[names[i], names[j]] for i, j in conflicts],
        "n_samples": n_samples,
    }


def _outcomes(fit: FitArrays) -> np.ndarray | None:
    """Codes of every node, `[n, L]`; None where no sample counts."""
    samples = node_samples(fit)
    if samples is None:
        return None
    log_weight = samples.log_likelihood + fit.graph.log_joint.reshape(-1)
    weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
    cell = _summed(weight / weight.sum(1, keepdims=True), fit).argmax(1)
    return np.stack(np.unravel_index(cell, fit.graph.log_joint.shape), axis=1)


def _latents(fit: FitArrays) -> np.ndarray | None:
    """Mean of E[Z given X] of every group by node, `[n, L]`; None where no sample counts, or blocks are of no node."""
    rows, columns = _rows(fit), _columns_of_nodes(fit)
    if not rows.any() or columns is None:
        return None
    counted = _summed(np.ones((int(rows.sum()), 1)), fit)
    return _summed(fit.latent_loc[rows][:, columns].astype(np.float64), fit) / counted


def _columns_of_nodes(fit: FitArrays) -> list[int] | None:
    """Dimension of Z that is every node's; None where one is of several or none.

    Under `nodewise` labels may have exchanged the nodes of blocks, and names may have mixed them: the means of a block
    tell, which change with its node alone. The blocks of `linear_scm` are those of the nodes in order.
    """
    shape = fit.graph.log_joint.shape
    if fit.attributes["config"]["model"]["prior"] != "nodewise":
        return list(range(len(shape)))
    means = fit.mixture.loc[np.argsort(fit.mixture.cell)].reshape(*shape, -1)
    changes = np.stack([np.ptp(means, axis=node).max(tuple(range(len(shape) - 1))) > 0 for node in range(len(shape))])
    if (changes.sum(0) != 1).any() or (changes.sum(1) != 1).any():
        return None
    return [int(column) for column in changes.argmax(1)]


def _rows(fit: FitArrays) -> np.ndarray:
    return observational_rows(fit.split == "train", fit.environment)


def _summed(values: np.ndarray, fit: FitArrays) -> np.ndarray:
    """Of rows that count, sums over every group, `[groups, ...]`; the rows themselves without groups."""
    if fit.groups is None:
        return values
    codes = np.unique(fit.groups[_rows(fit)], return_inverse=True)[1]
    sums = np.zeros((codes.max() + 1, values.shape[1]))
    np.add.at(sums, codes, values)
    return sums
