"""Clusters named by environments: what the search over labellings, graphs and targets settled, and what it left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from scipy.special import logsumexp, xlogy

from causalpima.inference.clusters.counting import count_labellings
from causalpima.inference.clusters.labels import (
    Clusters,
    Labelling,
    as_tables,
    check_number,
    enumerate_labellings,
    node_outcomes,
    partition_codes,
    rename_towards,
    with_nodes,
)
from causalpima.inference.graphs.dags import GraphKnowledge, all_dags
from causalpima.inference.graphs.environments import (
    EnvironmentGraphs,
    HiddenSamples,
    environment_posterior,
    factorised,
    fit_environments,
)
from causalpima.inference.graphs.hidden import log_likelihood_ratio

__all__ = [
    "MOST_MAPS",
    "TIE_WINDOW",
    "Environments",
    "Found",
    "Target",
    "environment_counts",
    "family_scores",
    "interventional_joint",
    "interventional_joints",
    "search",
    "soft_labelling",
    "target_maps",
]


# p(N) without interventions and under each, from all environments.


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


# How many samples of each environment every cluster has, corrected for the confusion of overlapping clusters.


_MOST_STEPS = 500
_TOLERANCE = 1e-8


def environment_counts(responsibilities: np.ndarray, environment: np.ndarray, n_environments: int) -> np.ndarray:
    r"""Maximum-likelihood mass of every cluster in every environment, components held, times its samples.

    Responsibilities come from one mixture for all samples, with shares `p(c)`, so that `l_nc = R_nc / p(c)` is
    proportional to the likelihood of sample n in cluster c. In environment e the shares maximise
    `Σ_{n in e} log Σ_c π_ec l_nc`, by expectation maximisation from `π_e = p`. Counting hard assignments, or R itself,
    draws what the environments differ in toward their mean, and makes up edges where clusters overlap.

    Args:
        responsibilities: R `[n, C]`, rows sum to 1.
        environment: Code of each sample, `[n]`, from 0 to E - 1.
        n_environments: E.

    Returns:
        `n_e π_ec`, `[E, C]`.
    """
    share = responsibilities.mean(0, dtype=np.float64)
    weights = np.exp(log_likelihood_ratio(responsibilities))
    found = np.zeros((n_environments, len(share)))
    for code in range(n_environments):
        rows = weights[environment == code]
        found[code] = len(rows) * _shares(rows, share) if len(rows) else 0.0
    return found


def _shares(likelihood: np.ndarray, start: np.ndarray) -> np.ndarray:
    """argmax over π of the mean of log Σ_c π_c l_nc."""
    share = start / start.sum()
    for _ in range(_MOST_STEPS):
        joint = likelihood * share
        new = (joint / joint.sum(1, keepdims=True)).mean(0)
        moved = float(np.abs(new - share).max())
        share = new
        if moved < _TOLERANCE:
            break
    return share


# Labelling, graph and targets of interventions together: an exact search by the score of do-type environments.


MOST_MAPS = 5000
_ROWS_AT_ONCE = 2000

Target = int | None
"""Position of the node that an environment intervenes upon; None: not known."""


@dataclass(frozen=True)
class Found:
    """What the search found.

    Attributes:
        labellings: Those that were searched, `[K, C]`.
        evidence: Of each, log Σ over graphs and target maps of exp(score): a uniform prior on both, `[K]`.
        targets: Of each, the node that every environment but the first intervenes upon, summed over graphs, `[K, E]`.
        graphs: All DAGs that agree with what is known, `[G, L, L]`.
        graph_evidence: Of each under the best labelling, log Σ over target maps, `[G]`.
        n_maps: Number of target maps searched.
    """

    labellings: np.ndarray
    evidence: np.ndarray
    targets: np.ndarray
    graphs: np.ndarray
    graph_evidence: np.ndarray
    n_maps: int

    @property
    def best(self) -> int:
        """Position of the best labelling."""
        return int(self.evidence.argmax())

    @property
    def best_graph(self) -> np.ndarray:
        """The best graph under the best labelling, `[L, L]` of 0 and 1, row = cause, column = effect."""
        graph: np.ndarray = self.graphs[self.graph_evidence.argmax()]
        return graph


def target_maps(known: Sequence[Target], n_nodes: int) -> np.ndarray:
    """Every way to give each intervened environment one node, with those that are known, `[M, E]`.

    Raises:
        ValueError: More than `MOST_MAPS`.
    """
    choices = [range(n_nodes) if node is None else [node] for node in known]
    if prod(map(len, choices)) > MOST_MAPS:
        raise ValueError(
            f"environments.targets: expected at most {MOST_MAPS} ways to choose targets, got "
            f"{n_nodes}**{sum(node is None for node in known)}; name the target of some environments"
        )
    return np.array(list(product(*choices)), dtype=np.int64).reshape(-1, len(known))


def search(
    counts: np.ndarray,
    labellings: np.ndarray,
    outcomes: Sequence[int],
    known: Sequence[Target],
    knowledge: GraphKnowledge | None = None,
) -> Found:
    """Score every labelling with every DAG that agrees with what is known, and every target map (`family_scores`).

    Args:
        counts: Samples per environment and cluster, `[1 + E, C]`; the first is observational.
        labellings: `[K, C]` (`enumerate_labellings`).
        outcomes: Outcomes per node.
        known: Target of each of the E others.
        knowledge: What is known of the graph; None: nothing.

    Raises:
        ValueError: More nodes or target maps than can be searched.
    """
    maps, graphs = target_maps(known, len(outcomes)), all_dags(len(outcomes))
    graphs = graphs if knowledge is None else graphs[knowledge.allows(graphs)]
    blocks = (labellings[start : start + _ROWS_AT_ONCE] for start in range(0, len(labellings), _ROWS_AT_ONCE))
    parts = [_by_map(family_scores(counts, part, outcomes), graphs, maps) for part in blocks]
    by_map = np.concatenate(parts)
    evidence = logsumexp(by_map, axis=1)
    best = family_scores(counts, labellings[[evidence.argmax()]], outcomes)
    by_graph = logsumexp([scores[0] for scores in _scores(best, graphs, maps)], axis=0)
    return Found(labellings, evidence, maps[by_map.argmax(1)], graphs, by_graph, len(maps))


def _by_map(families: np.ndarray, graphs: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """log Σ over graphs of exp(score), `[K, M]`."""
    return np.stack([logsumexp(scores, axis=1) for scores in _scores(families, graphs, maps)], axis=1)


def _scores(families: np.ndarray, graphs: np.ndarray, maps: np.ndarray) -> Iterator[np.ndarray]:
    """Score of every labelling and graph, `[K, G]`, map by map: the sum of the scores of its families."""
    parents = _as_set(graphs.swapaxes(1, 2))
    for targets in maps:
        chosen = [_as_set(targets == node) for node in range(graphs.shape[1])]
        parts = [families[:, node, which][:, parents[:, node]] for node, which in enumerate(chosen)]
        yield np.sum(parts, axis=0)


def _as_set(members: np.ndarray) -> np.ndarray:
    """The bits of the last axis as one number."""
    number: np.ndarray = (members.astype(np.int64) << np.arange(members.shape[-1])).sum(-1)
    return number


def family_scores(counts: np.ndarray, labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    r"""BIC of every node given every set of parents, for every set of environments that intervene upon it.

    With `m` the counts of the environments that leave node l alone, as a table over l and its parents, and `m_e` the
    counts of l in an environment e that intervenes upon it,

    $$\sum m \log \frac{m}{\sum_{l} m} + \sum_e \sum m_e \log \frac{m_e}{n_e} - \tfrac12 d \log n,$$

    where d counts the free probabilities: `(C_l - 1) ∏ C_pa`, and `C_l - 1` per intervention. A do-type intervention
    cuts a node from its parents, which is what no renaming of its outcomes per parent configuration can imitate.

    Args:
        counts: `[1 + E, C]`, see `search`.
        labellings: `[K, C]`.
        outcomes: Outcomes per node.

    Returns:
        `[K, L, 2^E, 2^L]`: sets of environments (without the first) and of parents as bits; minus infinity where the
        node itself is among the parents.
    """
    tables = as_tables(counts, labellings, outcomes)
    n_nodes, n_sets = len(outcomes), 2 ** (len(counts) - 1)
    found = np.full((len(labellings), n_nodes, n_sets, 2**n_nodes), -np.inf)
    for chosen in range(n_sets):
        cut = np.array([False, *(bool(chosen >> e & 1) for e in range(len(counts) - 1))])
        pooled, intervened = tables[:, ~cut].sum(1), tables[:, cut]
        for node, parents in product(range(n_nodes), range(2**n_nodes)):
            if not parents >> node & 1:
                found[:, node, chosen, parents] = _family(pooled, node, parents, outcomes)
        for node in range(n_nodes):
            found[:, node, chosen] += _interventions(intervened, node)[:, None]
    penalty = 0.5 * np.log(max(counts.sum(), 1.0))
    return found - penalty * _free_probabilities(outcomes, n_sets)


def _family(table: np.ndarray, node: int, parents: int, outcomes: Sequence[int]) -> np.ndarray:
    """Σ m log(m / Σ_l m) over the table of a node and its parents, `[K]`."""
    others = [k for k in range(len(outcomes)) if k != node and not parents >> k & 1]
    family = table.sum(axis=tuple(1 + k for k in others), keepdims=True)
    given = family.sum(axis=1 + node, keepdims=True)
    axes = tuple(range(1, table.ndim))
    score: np.ndarray = xlogy(family, family).sum(axes) - xlogy(given, given).sum(axes)
    return score


def _interventions(tables: np.ndarray, node: int) -> np.ndarray:
    """Σ_e Σ m_e log(m_e / n_e) of the node, `[K]`."""
    axes = tuple(2 + k for k in range(tables.ndim - 2) if k != node)
    own = tables.sum(axes)
    score: np.ndarray = (xlogy(own, own).sum(-1) - xlogy(own.sum(-1), own.sum(-1))).sum(-1)
    return score


def _free_probabilities(outcomes: Sequence[int], n_sets: int) -> np.ndarray:
    """`[L, 2^E, 2^L]`."""
    sizes = np.array(outcomes)
    bits = np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes)) & 1
    configurations = np.where(bits, sizes, 1).prod(1)
    n_cut = np.array([chosen.bit_count() for chosen in range(n_sets)])
    found: np.ndarray = (sizes - 1)[:, None, None] * (configurations + n_cut[:, None])
    return found


TIE_WINDOW = float(np.log(1000.0))
"""Labellings this close to the best, in nats, remain: at least a thousandth as probable."""


@dataclass(frozen=True)
class Environments:
    """Samples taken under interventions, each upon one node, that cut it from its causes (do-type).

    Attributes:
        nodes: Outcomes per node by name.
        codes: Environment of each sample that a labeller sees, `[n]`; 0 is observational.
        names: Names of the environments, in the order of the codes.
        targets: Environment -> node, of those that are known.
        visible: Nodes that each modality sees, by position, where a mask says so; the clusters come numbered by it.
        knowledge: What is known of the graph; None: nothing.
    """

    nodes: Mapping[str, int]
    codes: np.ndarray
    names: tuple[str, ...]
    targets: Mapping[str, str]
    visible: tuple[tuple[int, ...], ...] = ()
    knowledge: GraphKnowledge | None = None

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Outcomes per node."""
        return tuple(self.nodes.values())

    def check(self) -> None:
        """Refuse what cannot be searched.

        Raises:
            ValueError: Too many labellings or target maps.
        """
        if not self._mask_says_all():
            check_number(self.outcomes, self._kinds())
        target_maps(self.known, len(self.nodes))

    def labelling(self, clusters: Clusters, base: Labelling | None = None) -> Labelling:
        """The most probable labelling with the graph and the targets that go with it.

        Args:
            clusters: The clusters of the samples.
            base: What stronger side information said of some nodes: kept as it is.

        Raises:
            ValueError: More labellings, nodes or target maps than can be searched.
        """
        counts = environment_counts(clusters.responsibilities, self.codes, len(self.names))
        candidates = self._candidates(base, counts.shape[1])
        found = search(counts, candidates, self.outcomes, self.known, self.knowledge)
        order = self._order(found, base)
        permutation = self._numbered(found, order, base, counts.sum(0))
        graph, targets = found.best_graph[np.ix_(order, order)], np.argsort(order)[found.targets[found.best]]
        settled = [name for name, node in zip(self.nodes, order, strict=True) if self._is_settled(found, node)]
        told = [*base.named_nodes, *settled] if base is not None else settled
        details = {**(base.details if base is not None else {}), **self._details(found, order, counts)}
        # A graph over nodes without a meaning is nothing that a model should take over.
        joints = None
        if set(told) == set(self.nodes):
            joints = interventional_joints(counts, permutation, self.outcomes, graph, targets)
        return Labelling(
            permutation,
            base.source if base is not None else "environments",
            tuple(name for name in self.nodes if name in told),
            details | {"graph": graph.tolist()},
            None if joints is None else joints[0],
            environment_joint={} if joints is None else dict(zip(self.names[1:], joints[1:], strict=True)),
        )

    @property
    def known(self) -> list[int | None]:
        """Position of the target of every environment but the first; None where it is to be found."""
        nodes = list(self.nodes)
        return [nodes.index(self.targets[name]) if name in self.targets else None for name in self.names[1:]]

    def _kinds(self) -> list[str]:
        """By name nodes that a mask or a known target tells apart; the others by the first one that is alike."""
        names = list(self.nodes)
        open_nodes = [k for k, name in enumerate(names) if not self.visible and name not in self.targets.values()]
        like = {k: next(other for other in open_nodes if self._may_be_exchanged(k, other)) for k in open_nodes}
        return [names[like.get(k, k)] for k in range(len(names))]

    def _may_be_exchanged(self, one: int, other: int) -> bool:
        """Whether all that is known of the graph is as true with two nodes in each other's place."""
        if self.knowledge is None:
            return True
        order = np.arange(len(self.nodes))
        order[[one, other]] = other, one
        own = np.eye(len(order), dtype=bool)
        known = (self.knowledge.forbidden & ~own, self.knowledge.required & ~own)
        return all(np.array_equal(edges, edges[np.ix_(order, order)]) for edges in known)

    def _mask_says_all(self) -> bool:
        return bool(self.visible) and count_labellings(self.outcomes, self.visible, kinds=self._kinds()) == 1

    def _candidates(self, base: Labelling | None, n_cells: int) -> np.ndarray:
        """All labellings, or those that agree with what is known of some nodes."""
        if base is None or not base.named_nodes:
            return self._allowed(n_cells)
        fixed = [position for position, name in enumerate(self.nodes) if name in base.named_nodes]
        if len(fixed) == len(self.nodes):
            return base.permutation[None]
        every = enumerate_labellings(self.outcomes, list(self.nodes))
        wanted = partition_codes(node_outcomes(base.permutation, self.outcomes)[fixed])
        return every[(node_outcomes(every, self.outcomes)[:, fixed] == wanted).all((1, 2))]

    def _allowed(self, n_cells: int) -> np.ndarray:
        """Those that keep what every modality tells apart."""
        identity = np.arange(n_cells)
        if self._mask_says_all():
            return identity[None]
        every = enumerate_labellings(self.outcomes, self._kinds())
        for nodes in self.visible:
            seen, wanted = (_levels(entry, nodes, self.outcomes) for entry in (every, identity[None]))
            every = every[(seen == wanted).all(-1)]
        return every

    def _order(self, found: Found, base: Labelling | None) -> np.ndarray:
        """Which node of the search each node is: those that may be exchanged, by the first environment upon them."""
        nodes = np.arange(len(self.nodes))
        if self.visible or (base is not None and base.named_nodes):
            return nodes
        targets = found.targets[found.best].tolist()
        first = [targets.index(node) if node in targets else len(targets) for node in nodes]
        order = nodes.copy()
        for mark in set(zip(self.outcomes, self._kinds(), strict=True)):
            alike = [n for n in nodes if (self.outcomes[n], self._kinds()[n]) == mark]
            order[alike] = sorted(alike, key=lambda node: first[node])
        return order

    def _numbered(self, found: Found, order: np.ndarray, base: Labelling | None, mass: np.ndarray) -> np.ndarray:
        """The best labelling, nodes in order, outcomes numbered as the base or else the clusters are."""
        codes = node_outcomes(found.labellings[found.best], self.outcomes)[order]
        wanted = base.permutation if base is not None and base.named_nodes else np.arange(len(mass))
        return rename_towards(with_nodes(codes, self.outcomes), wanted, self.outcomes, mass)

    def _is_settled(self, found: Found, node: int) -> bool:
        """Whether every labelling that remains has the same clusters behind a node.

        A node that environments intervene upon is that node in every labelling; of the others, one alone can be known.
        """
        remaining = found.evidence >= found.evidence.max() - TIE_WINDOW
        codes = node_outcomes(found.labellings[remaining], self.outcomes)
        mine = partition_codes(node_outcomes(found.labellings[found.best], self.outcomes)[node])
        targets, best = found.targets[remaining], found.targets[found.best]
        if node in best:
            at = targets[:, best.tolist().index(node)]
            same = partition_codes(codes[np.arange(len(codes)), at]) == mine
        else:
            if len(set(range(len(self.nodes))) - set(best.tolist())) > 1:
                return False
            same = (partition_codes(codes) == mine).all(-1).any(-1)[:, None]
        return bool(same.all())

    def _details(self, found: Found, order: np.ndarray, counts: np.ndarray) -> dict[str, Any]:
        names = np.array(list(self.nodes))[np.argsort(order)]
        sorted_graphs = np.sort(found.graph_evidence)
        weight = np.exp(found.graph_evidence - logsumexp(found.graph_evidence))
        probability = np.tensordot(weight, found.graphs[:, order][:, :, order], 1)
        return {
            "targets": {name: str(names[t]) for name, t in zip(self.names[1:], found.targets[found.best], strict=True)},
            "known_targets": sorted(self.targets),
            "samples": dict(zip(self.names, counts.sum(1).round().astype(int).tolist(), strict=True)),
            "edge_probability": probability.tolist(),
            "graph_gap": _gap(sorted_graphs),
            "labelling_gap": _gap(np.sort(found.evidence)),
            "n_remaining": int((found.evidence >= found.evidence.max() - TIE_WINDOW).sum()),
            "n_searched": {"labellings": len(found.labellings), "graphs": len(found.graphs), "targets": found.n_maps},
        }


def _levels(labellings: np.ndarray, nodes: Sequence[int], outcomes: Sequence[int]) -> np.ndarray:
    """Which clusters have the same outcomes of some nodes, `[K, C]`."""
    codes = node_outcomes(labellings, outcomes)[:, list(nodes)]
    return partition_codes(with_nodes(codes, [outcomes[node] for node in nodes]))


def _gap(ascending: np.ndarray) -> float | None:
    """By how many nats the best is ahead of the next; None where there is no other."""
    return float(ascending[-1] - ascending[-2]) if len(ascending) > 1 else None


# Environments whose interventions are soft: over nodes that something else names, they direct edges.


def soft_labelling(
    environments: Environments, knowledge: GraphKnowledge, clusters: Clusters, base: Labelling | None
) -> Labelling:
    """What names the clusters, with the graph and the targets that the environments tell under these names.

    Soft interventions name nothing: under another labelling they would fit as well (docs/environments.md). Where labels
    leave a node without a meaning, there is no graph to be told, and the labelling stays as it is.

    Args:
        environments: Who was under which intervention.
        knowledge: What is known of the graph.
        clusters: The clusters of the samples.
        base: What labels said; None: a mask has numbered the cells.

    Raises:
        ValueError: More than five nodes, or too many maps of targets.
    """
    named = base or Labelling(np.arange(clusters.responsibilities.shape[1]))
    if base is not None and set(base.named_nodes) != set(environments.nodes) and not environments.visible:
        return named
    counts = environment_counts(clusters.responsibilities, environments.codes, len(environments.names))
    tables = as_tables(counts, named.permutation[None], environments.outcomes)[0]
    maps = target_maps(environments.known, len(environments.nodes))
    likelihood = log_likelihood_ratio(clusters.responsibilities)[:, np.argsort(named.permutation)]
    hidden = HiddenSamples(likelihood, environments.codes, environments.outcomes)
    found = environment_posterior(tables, maps, knowledge, "soft", hidden=hidden)
    joint, *of_environments = fit_environments(hidden, found.graph.astype(int), found.targets, "soft")[1]
    return replace(
        named,
        details={**named.details, **_details(environments, found, counts)},
        joint=joint,
        environment_joint=dict(zip(environments.names[1:], of_environments, strict=True)),
    )


def _details(environments: Environments, found: EnvironmentGraphs, counts: np.ndarray) -> dict[str, Any]:
    nodes, posterior = list(environments.nodes), found.posterior
    return {
        "kind": "soft",
        "targets": {name: nodes[target] for name, target in zip(environments.names[1:], found.targets, strict=True)},
        "target_probability": {
            name: dict(zip(nodes, row.tolist(), strict=True))
            for name, row in zip(environments.names[1:], found.target_probability, strict=True)
        },
        "known_targets": sorted(environments.targets),
        "samples": dict(zip(environments.names, counts.sum(1).round().astype(int).tolist(), strict=True)),
        "graph": found.graph.astype(int).tolist(),
        "class": posterior.best.tolist(),
        "classes": [{"cpdag": graph.tolist(), "probability": weight} for graph, weight in posterior.classes],
        "edge_probability": posterior.edge_probability.tolist(),
        "compelled_probability": posterior.compelled_probability.tolist(),
        "graph_gap": found.gap,
        "n_searched": {"graphs": posterior.diagnostics["n_graphs"], "targets": posterior.diagnostics["n_targets"]},
    }
