"""Clusters named by environments: what the search over labellings, graphs and targets settled, and what it left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from inference.graphs.knowledge import GraphKnowledge
from inference.identifiability.labellings import count_labellings
from inference.labelling.environment_joint import interventional_joints
from inference.labelling.environment_masses import environment_counts
from inference.labelling.environment_search import Found, search, target_maps
from inference.labelling.labelling import Clusters, Labelling
from inference.labelling.labelling_search import (
    check_number,
    enumerate_labellings,
    node_outcomes,
    partition_codes,
    rename_towards,
    with_nodes,
)

__all__ = ["TIE_WINDOW", "Environments"]

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
