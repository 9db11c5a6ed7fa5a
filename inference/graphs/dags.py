"""Directed acyclic graphs over a few nodes, all of them at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

__all__ = [
    "ARROW",
    "MOST_MEMBERS",
    "MOST_NODES",
    "GraphKnowledge",
    "GraphScores",
    "KnowledgeConfig",
    "all_dags",
    "class_codes",
    "class_members",
    "compare",
    "compelled",
    "cpdag",
    "edge_text",
    "essential_graph",
    "graph_knowledge",
    "interventional_codes",
    "is_acyclic",
    "meek_closure",
    "mpdag",
    "permute_nodes",
    "read_edge",
    "skeleton",
    "structural_hamming_distance",
    "v_structures",
]


# What is declared of the graph before the fit.


@dataclass(frozen=True)
class KnowledgeConfig:
    """What is known of the graph before the fit, by names of nodes (docs/knowledge.md).

    Attributes:
        forbid: Edges that are not there, as `A->B` (row to column; `B->A` stays possible).
        require: Edges that are there, as `A->B`.
        tiers: Nodes in groups, the earliest first: no edge leads from a later group to an earlier one; nodes in no
            group are free.
        designed: Nodes that the experimenter set: they have no parents.
    """

    forbid: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    designed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Lists, as files have them, become tuples; anything else is refused by `check_settings`, by name.
        for name in ("forbid", "require", "tiers", "designed"):
            object.__setattr__(self, name, _as_tuples(getattr(self, name)))


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


MOST_NODES = 5
"""Up to so many nodes all graphs are listed: 1, 3, 25, 543, 29281."""


def is_acyclic(graph: np.ndarray) -> np.ndarray:
    """Whether no directed path leads back to where it began.

    Edges into nodes without effects are on no cycle; taken out until nothing changes, they leave none where there is no
    cycle.

    Args:
        graph: `[..., L, L]` of 0 and 1, row = cause, column = effect; an undirected edge (1 both ways) is a cycle.

    Returns:
        Bool `[...]`.
    """
    edges: np.ndarray = graph.astype(bool)
    for _ in range(graph.shape[-1]):
        left = edges & np.asarray(edges.any(-1))[..., None, :]
        if np.array_equal(left, edges):
            break
        edges = left
    return np.asarray(~edges.any((-2, -1)))


def all_dags(n_nodes: int) -> np.ndarray:
    """Every directed acyclic graph over labelled nodes, the empty one first.

    Args:
        n_nodes: Number of nodes, 1 to 5.

    Returns:
        `[graph, L, L]` of 0 and 1, row = cause, column = effect.

    Raises:
        ValueError: More nodes than can be listed, or none.
    """
    if not 1 <= n_nodes <= MOST_NODES:
        raise ValueError(f"n_nodes: expected 1 to {MOST_NODES}, got {n_nodes}; more graphs than can be listed")
    pairs = list(combinations(range(n_nodes), 2))
    states = np.array(list(product((0, 1, 2), repeat=len(pairs))), dtype=np.int8)
    graphs = np.zeros((len(states), n_nodes, n_nodes), dtype=np.int8)
    for column, (i, j) in enumerate(pairs):
        graphs[:, i, j], graphs[:, j, i] = states[:, column] == 1, states[:, column] == 2
    return graphs[is_acyclic(graphs)]


# Markov equivalence: what observations alone can tell of a directed acyclic graph.
#
# Two graphs are equivalent, that is, allow the same distributions, exactly if they have the same skeleton and the same
# v-structures (Verma and Pearl 1990). The class is drawn as a CPDAG: an edge is directed (compelled) where all graphs
# of
# the class agree on it, else undirected. Entry `[i, j]` = 1 and `[j, i]` = 0: i → j; 1 both ways: i — j.


def skeleton(graph: np.ndarray) -> np.ndarray:
    """Whether two nodes are joined, bool `[..., L, L]`, symmetric."""
    edges = graph.astype(bool)
    return edges | edges.swapaxes(-1, -2)


def compelled(graph: np.ndarray) -> np.ndarray:
    """The directed edges of a CPDAG (of a DAG: all), bool `[..., L, L]`."""
    edges = graph.astype(bool)
    return edges & ~edges.swapaxes(-1, -2)


def v_structures(graph: np.ndarray) -> np.ndarray:
    """Where i → k ← j with i and j not joined, bool `[..., i, k, j]`, symmetric in i and j.

    Args:
        graph: DAGs or CPDAGs, `[..., L, L]`.
    """
    into, joined = compelled(graph), skeleton(graph)
    apart = ~joined & ~np.eye(graph.shape[-1], dtype=bool)
    both = into[..., :, :, None] & into.swapaxes(-1, -2)[..., None, :, :]
    return both & apart[..., :, None, :]


def cpdag(dag: np.ndarray) -> np.ndarray:
    """The Markov equivalence class of a DAG.

    The v-structures are directed; then the rules of Meek (1995) direct what else is the same in the whole class.

    Args:
        dag: `[L, L]` of 0 and 1, row = cause, column = effect.

    Returns:
        `[L, L]` of 0 and 1; 1 both ways where the direction is open.

    Raises:
        ValueError: It is not square, or has a cycle.
    """
    _check(dag)
    return meek_closure(np.asarray(v_structures(dag).any(-1)), skeleton(dag))


def meek_closure(directed: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """All directions that follow from some, by the four rules of Meek (1995), until none says more.

    With v-structures and directions that are known from elsewhere the four are sound and complete (Meek 1995, theorem
    4): what they leave open differs between graphs of the class that agree with what is known. The fourth says nothing
    where only v-structures were directed.

    Args:
        directed: What is directed, bool `[L, L]`: all v-structures, and more.
        joined: The skeleton, bool `[L, L]`.

    Returns:
        `[L, L]` of 0 and 1; 1 both ways where the direction is open.
    """
    while True:
        open_edges = joined & ~directed & ~directed.T
        rules = _away_from_collider(directed, joined) | _no_cycle(directed)
        rules |= _two_ways(directed, open_edges, joined) | _around(directed, open_edges, joined)
        more = open_edges & rules
        if not more.any():
            return (directed | open_edges).astype(np.int64)
        directed = directed | more


def class_codes(dags: np.ndarray) -> np.ndarray:
    """Number of the equivalence class of each DAG, `[graph]`: equal where skeleton and v-structures are.

    Args:
        dags: `[graph, L, L]`.
    """
    flat = [part(dags).reshape(len(dags), -1) for part in (skeleton, v_structures)]
    return np.unique(np.packbits(np.concatenate(flat, axis=1), axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _away_from_collider(directed: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Rule 1: k → i — j becomes i → j where k and j are not joined: else there were another v-structure."""
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    return directed.T @ apart


def _no_cycle(directed: np.ndarray) -> np.ndarray:
    """Rule 2: i → k → j and i — j becomes i → j: else there were a cycle."""
    return directed @ directed


def _two_ways(directed: np.ndarray, open_edges: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Rule 3: i — k → j and i — l → j with k and l not joined, and i — j, becomes i → j."""
    found = np.zeros_like(directed)
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    for i, j in np.argwhere(open_edges):
        middle = open_edges[i] & directed[:, j]
        found[i, j] = apart[np.ix_(middle, middle)].any()
    return found


def _around(directed: np.ndarray, open_edges: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Rule 4: i — k → l → j with k and j not joined, i and l joined, and i — j, becomes i → j.

    Were it j → i, then i → k (else there were another v-structure), so i → l (else a cycle), hence a cycle i → l → j.
    """
    found = np.zeros_like(directed)
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    for i, j in np.argwhere(open_edges):
        first, second = open_edges[i] & apart[:, j], joined[i] & directed[:, j]
        found[i, j] = directed[np.ix_(first, second)].any()
    return found


def _check(dag: np.ndarray) -> None:
    if dag.ndim != 2 or dag.shape[0] != dag.shape[1]:
        raise ValueError(f"dag: expected shape [node, node], got {dag.shape}; pass an adjacency matrix")
    if not bool(is_acyclic(dag)):
        raise ValueError("dag: expected a graph without cycles, got one with; rows are causes, columns are effects")


# Edges as text: `cause->effect`, with names of nodes that may hold nearly anything.


ARROW = re.compile("->|\N{RIGHTWARDS ARROW}")
"""Both arrows that stand between a cause and its effect."""


def read_edge(name: str, text: str, nodes: Sequence[str]) -> tuple[str, str]:
    """Cause and effect; an arrow within a name of a node is told from the one between two names.

    Args:
        name: What the text is a value of, for messages.
        text: `cause->effect`, blanks around the names do not matter.
        nodes: Names of all nodes.

    Raises:
        ValueError: No edge, a node that is not there, or a text that can be read in two ways.

    >>> read_edge("forbid", "a->b -> c", ["a->b", "c"])
    ('a->b', 'c')
    """
    pairs = [(text[: at.start()].strip(), text[at.end() :].strip()) for at in ARROW.finditer(text)]
    if not pairs:
        raise ValueError(f"{name}: expected edges as CAUSE->EFFECT with commas between them, got {text!r}")
    known = [pair for pair in pairs if set(pair) <= set(nodes)]
    if len(known) == 1:
        return known[0]
    if known:
        raise ValueError(f"{name}: expected an edge that can be read in one way, got {text!r}; rename these nodes")
    raise ValueError(f"{name}: expected nodes among {', '.join(nodes)}, got {_odd(pairs, nodes)!r} in {text!r}")


def edge_text(cause: str, effect: str) -> str:
    """The text of an edge: what `read_edge` reads."""
    return f"{cause}->{effect}"


def _odd(pairs: Sequence[tuple[str, str]], nodes: Sequence[str]) -> str:
    """A name that is none, of the reading in which most names are nodes."""
    best = max(pairs, key=lambda pair: sum(end in nodes for end in pair))
    return next(end for end in best if end not in nodes)


# What is known of a graph beforehand: edges that are not there, edges that are there.


@dataclass(frozen=True)
class GraphKnowledge:
    """Edges that every graph must lack or have; tiers and designed nodes are edges that are not there.

    Attributes:
        nodes: Names of the L nodes.
        forbidden: bool `[L, L]`, row = cause, column = effect; the diagonal is not looked at.
        required: bool `[L, L]`; no edge is both, and the required ones have no cycle.
    """

    nodes: tuple[str, ...]
    forbidden: np.ndarray
    required: np.ndarray

    @classmethod
    def none(cls, nodes: tuple[str, ...]) -> GraphKnowledge:
        """Nothing is known."""
        empty = np.zeros((len(nodes), len(nodes)), dtype=bool)
        return cls(tuple(nodes), empty, empty.copy())

    def allows(self, dags: np.ndarray) -> np.ndarray:
        """Whether graphs `[..., L, L]` agree with it, bool `[...]`."""
        edges = dags.astype(bool)
        agrees: np.ndarray = ~(edges & self.forbidden).any((-1, -2)) & ~(~edges & self.required).any((-1, -2))
        return agrees

    def parent_sets(self) -> np.ndarray:
        """Which sets of parents each node may have, bool `[L, 2^L]`; bit k of a set stands for node k."""
        n_nodes = len(self.nodes)
        sets = np.arange(2**n_nodes)
        bits = (1 << np.arange(n_nodes))[:, None]
        banned = (bits * (self.forbidden | np.eye(n_nodes, dtype=bool))).sum(0)[:, None]
        needed = (bits * self.required).sum(0)[:, None]
        allowed: np.ndarray = ((sets & banned) == 0) & ((sets & needed) == needed)
        return allowed


def graph_knowledge(config: KnowledgeConfig, nodes: Sequence[str]) -> GraphKnowledge:
    """What is declared of the graph over some nodes, as edges that are not there and edges that are.

    Args:
        config: The declarations.
        nodes: Names of the nodes, in the order of the matrices.

    Raises:
        ValueError: Declarations that contradict each other, or that are about nodes that are not there; the message
            names them. Forbidding every edge is no contradiction.
    """
    nodes = tuple(nodes)
    forbidden = _edges("knowledge.forbid", config.forbid, nodes)
    required = _edges("knowledge.require", config.require, nodes)
    designed = _designed(config.designed, nodes)
    against_tiers = _against_tiers(config.tiers, nodes)
    _refuse(required & forbidden, nodes, "that knowledge.forbid does not name")
    _refuse(required & designed, nodes, "that lead into no node of knowledge.designed, which has no causes")
    _refuse(required & against_tiers, nodes, "that lead from no later tier of knowledge.tiers to an earlier one")
    _refuse_cycle(required, nodes)
    return GraphKnowledge(nodes, forbidden | designed | against_tiers, required)


def _edges(name: str, texts: Iterable[str], nodes: tuple[str, ...]) -> np.ndarray:
    found = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for text in texts:
        cause, effect = read_edge(name, text, nodes)
        if cause == effect:
            raise ValueError(f"{name}: expected edges between two nodes, got {text!r}; no node causes itself")
        found[nodes.index(cause), nodes.index(effect)] = True
    return found


def _designed(designed: Iterable[str], nodes: tuple[str, ...]) -> np.ndarray:
    """Every edge into a designed node."""
    _check_nodes("knowledge.designed", designed, nodes)
    into = np.isin(nodes, list(designed))
    return np.tile(into, (len(nodes), 1)) & ~np.eye(len(nodes), dtype=bool)


def _against_tiers(tiers: Sequence[Sequence[str]], nodes: tuple[str, ...]) -> np.ndarray:
    """Every edge from a later tier to an earlier one."""
    names = [node for tier in tiers for node in tier]
    _check_nodes("knowledge.tiers", names, nodes)
    twice = next((node for node, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"knowledge.tiers: expected every node in one tier at most, got {twice!r} twice")
    tier = np.full(len(nodes), np.nan)  # no comparison with it is true
    for number, members in enumerate(tiers):
        tier[[nodes.index(node) for node in members]] = number
    later: np.ndarray = tier[:, None] > tier[None, :]
    return later


def _check_nodes(name: str, names: Iterable[str], nodes: tuple[str, ...]) -> None:
    odd = next((node for node in names if node not in nodes), None)
    if odd is not None:
        raise ValueError(f"{name}: expected nodes among {', '.join(nodes)}, got {odd!r}")


def _refuse(contradictions: np.ndarray, nodes: tuple[str, ...], expected: str) -> None:
    if contradictions.any():
        cause, effect = np.argwhere(contradictions)[0]
        edge = edge_text(nodes[cause], nodes[effect])
        raise ValueError(f"knowledge.require: expected edges {expected}, got {edge}; leave one of the two out")


def _refuse_cycle(required: np.ndarray, nodes: tuple[str, ...]) -> None:
    if not bool(is_acyclic(required)):
        cycle = "->".join(nodes[node] for node in _cycle(required))
        raise ValueError(f"knowledge.require: expected edges without a cycle, got {cycle}; leave one of them out")


def _cycle(edges: np.ndarray) -> list[int]:
    """A cycle of a graph that has one, its first node once more at the end."""
    left = edges.copy()
    while (ends := ~left.any(1) & left.any(0)).any():
        left[:, ends] = False
    path = [int(np.flatnonzero(left.any(1))[0])]
    while path[-1] not in path[:-1]:
        path.append(int(np.flatnonzero(left[path[-1]])[0]))
    return path[path.index(path[-1]) :]


# What is left open of a graph when more is known than observations tell: knowledge of edges, interventions.


def mpdag(dag: np.ndarray, knowledge: GraphKnowledge) -> np.ndarray:
    """The graphs that are equivalent to a DAG and agree with what is known, as one graph.

    Equivalent graphs have the same pairs joined, so that of an edge which is known not to be there, either its pair is
    not joined in any of them, or its reverse is there in all that agree. What is known is thus a set of directions, for
    which the rules of Meek are complete: no enumeration of the class is needed.

    Args:
        dag: `[L, L]` of 0 and 1, row = cause, column = effect.
        knowledge: What is known.

    Returns:
        `[L, L]` of 0 and 1: the union of those graphs; 1 both ways where they disagree on the direction.

    Raises:
        ValueError: The DAG has a cycle, or does not agree with what is known itself.
    """
    return essential_graph(dag, (), knowledge)


def essential_graph(
    dag: np.ndarray, targets: Iterable[Collection[int]] = (), knowledge: GraphKnowledge | None = None
) -> np.ndarray:
    """The interventional Markov equivalence class of a DAG (Hauser and Bühlmann 2012), of what knowledge leaves of it.

    Besides observations there are samples under interventions upon sets of nodes. An edge of which exactly one end is
    in some set has its direction told: perfect interventions cut it or leave it (theorem 10 there), soft ones change
    the conditional distribution of one end alone (Yang, Katcoff and Uhler 2018). Then the rules of Meek.

    Args:
        dag: `[L, L]` of 0 and 1, row = cause, column = effect.
        targets: Nodes of each intervention, by position; samples without intervention are there as well.
        knowledge: What is known; None: nothing.

    Returns:
        `[L, L]` of 0 and 1; 1 both ways where the direction is open.

    Raises:
        ValueError: The DAG has a cycle, does not agree with what is known, or targets are no nodes.
    """
    joined = skeleton(cpdag(dag))  # refuses what is no DAG
    told = _told(len(dag), targets)
    if knowledge is not None:
        if not bool(knowledge.allows(dag)):
            raise ValueError("dag: expected a graph that agrees with what is known, got another; look at knowledge")
        told |= knowledge.required | knowledge.forbidden
    return meek_closure(np.asarray(v_structures(dag).any(-1)) | (dag.astype(bool) & (told | told.T)), joined)


def interventional_codes(dags: np.ndarray, targets: Iterable[Collection[int]] = ()) -> np.ndarray:
    """Number of the interventional equivalence class of each DAG, `[graph]`, by definition.

    Equal where skeleton and v-structures are, and where for each set of targets the same edges are left when those into
    its nodes are cut (Hauser and Bühlmann 2012, theorem 10).

    Args:
        dags: `[graph, L, L]`.
        targets: Nodes of each intervention, by position.
    """
    cut = (skeleton(dags.astype(bool) & ~_into(dags.shape[-1], nodes)) for nodes in targets)
    flat = [part.reshape(len(dags), -1) for part in (skeleton(dags), v_structures(dags), *cut)]
    return np.unique(np.packbits(np.concatenate(flat, axis=1), axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _told(n_nodes: int, targets: Iterable[Collection[int]]) -> np.ndarray:
    """Pairs exactly one node of which some set of targets has, bool `[L, L]`, symmetric."""
    told = np.zeros((n_nodes, n_nodes), dtype=bool)
    for nodes in targets:
        inside = _into(n_nodes, nodes)[0]
        told |= inside[:, None] != inside[None, :]
    return told


def _into(n_nodes: int, nodes: Collection[int]) -> np.ndarray:
    """Every pair whose second node is one of these, bool `[L, L]`."""
    odd = next((node for node in nodes if not 0 <= node < n_nodes), None)
    if odd is not None:
        raise ValueError(f"targets: expected nodes 0 to {n_nodes - 1}, got {odd}; give positions of nodes")
    inside = np.zeros(n_nodes, dtype=bool)
    inside[list(nodes)] = True
    return np.tile(inside, (n_nodes, 1))


# The directed acyclic graphs of an equivalence class, or of what knowledge leaves of one.


MOST_MEMBERS = 5040
"""As many as a complete graph of seven nodes has."""


def class_members(graph: np.ndarray) -> np.ndarray:
    """Every DAG with the edges of a partially directed graph, its arrows, and no other v-structure than its own.

    Of a CPDAG these are the graphs of its class; of one with further arrows that are known (Meek 1995), those that
    agree with them.

    Args:
        graph: `[L, L]`, row = cause, column = effect, 1 both ways where the direction is open.

    Returns:
        `[member, L, L]` of 0 and 1; at least one.

    Raises:
        ValueError: It has no member, or more than 5040.
    """
    wanted = v_structures(graph)
    found: list[np.ndarray] = []
    for member in _directed(compelled(graph), _open_pairs(graph), skeleton(graph), wanted):
        found.append(member.astype(np.int8))
        if len(found) > MOST_MEMBERS:
            raise ValueError(f"graph: expected a class of at most {MOST_MEMBERS} graphs, got more; direct some edges")
    if not found:
        raise ValueError("graph: expected a class of directed acyclic graphs, got one without any; look at its arrows")
    return np.stack(found)


def _open_pairs(graph: np.ndarray) -> list[tuple[int, int]]:
    edges = graph.astype(bool)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(edges & edges.T))]


def _directed(
    arrows: np.ndarray, left: list[tuple[int, int]], joined: np.ndarray, wanted: np.ndarray
) -> Iterator[np.ndarray]:
    """All ways to direct what is left, given up as soon as a cycle or another v-structure appears."""
    if not bool(is_acyclic(arrows)) or (_colliders(arrows, joined) & ~wanted).any():
        return
    if not left:
        yield arrows
        return
    (i, j), *rest = left
    for start, end in ((i, j), (j, i)):
        more = arrows.copy()
        more[start, end] = True
        yield from _directed(more, rest, joined, wanted)


def _colliders(arrows: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """i → k ← j with i and j not joined in the end, bool `[i, k, j]`."""
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    both: np.ndarray = arrows[:, :, None] & arrows.T[None, :, :]
    return both & apart[:, None, :]


# How far a found equivalence class is from the true one.


@dataclass(frozen=True)
class GraphScores:
    """A found CPDAG against the true one.

    Attributes:
        shd: Structural Hamming distance: pairs of nodes that are joined, or directed, in another way.
        skeleton_f1: F1 of the joined pairs.
        v_structure_f1: F1 of the v-structures.
        orientation: Share of the compelled edges of the truth that are found with this direction; None where the truth
            compels none.
    """

    shd: int
    skeleton_f1: float
    v_structure_f1: float
    orientation: float | None

    @property
    def is_exact(self) -> bool:
        """Whether it is the true class."""
        return self.shd == 0


def compare(found: np.ndarray, true: np.ndarray) -> GraphScores:
    """Score a CPDAG against the true one.

    F1 is `2 TP / (2 TP + FP + FN)`, and 1 where there is nothing to find and nothing was found.

    Args:
        found: CPDAG `[L, L]`, 1 both ways where the direction is open.
        true: The same of the truth, nodes in the same order.

    Raises:
        ValueError: The two differ in shape.
    """
    return GraphScores(
        structural_hamming_distance(found, true),
        _f1(np.triu(skeleton(found)), np.triu(skeleton(true))),
        _f1(_once(v_structures(found)), _once(v_structures(true))),
        _orientation(found, true),
    )


def structural_hamming_distance(found: np.ndarray, true: np.ndarray) -> int:
    """Number of pairs of nodes whose edge differs: missing, surplus, reversed, or directed in one alone.

    Every pair counts once (Tsamardinos et al. 2006, on CPDAGs).

    Args:
        found: `[L, L]`, 1 both ways where the direction is open.
        true: The same of the truth.

    Raises:
        ValueError: The two differ in shape.
    """
    if found.shape != true.shape:
        raise ValueError(f"found: expected shape {true.shape} as the truth has, got {found.shape}; align the nodes")
    differs = found.astype(bool) != true.astype(bool)
    return int(np.triu(differs | differs.T, 1).sum())


def permute_nodes(graph: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The same graph with its nodes in another order: node `order[k]` becomes node k."""
    return graph[np.ix_(order, order)]


def _f1(found: np.ndarray, true: np.ndarray) -> float:
    hits, total = int((found & true).sum()), int(found.sum() + true.sum())
    return 2 * hits / total if total else 1.0


def _once(found: np.ndarray) -> np.ndarray:
    """i → k ← j with i < j alone."""
    index = np.arange(len(found))
    return found & (index[:, None, None] < index[None, None, :])


def _orientation(found: np.ndarray, true: np.ndarray) -> float | None:
    wanted = compelled(true)
    return float((compelled(found) & wanted).sum() / wanted.sum()) if wanted.any() else None
