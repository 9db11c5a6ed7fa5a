"""What a summary says of the graph that is shown: its edges in words, and what they rest on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from math import inf, log
from typing import Any, Literal, NamedTuple

import numpy as np

from causalpima.inference.data.roles import ROWS_PER_CELL
from causalpima.inference.findings import information
from causalpima.inference.findings.meaning import causal_graph_sentence, interventional_graph, is_named
from causalpima.inference.findings.verdicts import UNDECIDED_NATS, gap_text
from causalpima.inference.graphs.dags import compelled, meek_closure, read_edge, skeleton, v_structures
from causalpima.inference.store.text import format_number, is_number, printable, shorten

__all__ = [
    "DOUBTFUL",
    "FREE",
    "INDEPENDENT_BITS",
    "Basis",
    "ShownEdge",
    "ShownGraph",
    "Signs",
    "arrow_notes",
    "between",
    "class_sentence",
    "declared_arrows",
    "declared_sentence",
    "drawn_class",
    "edge_texts",
    "edges_heading",
    "edges_remark",
    "graph_table",
    "information_text",
    "is_declared",
    "is_free",
    "joined_pairs",
    "learned_sentence",
    "left_out_sentence",
    "mutual_information",
    "posterior_sentence",
    "short_pairs",
    "shown_graph",
]


# Soft strengths of the trained graph, and how much the nodes that they join say of each other.


INDEPENDENT_BITS = 0.01
"""Below this, nodes are practically independent."""


def joined_pairs(graph: Mapping[str, Any]) -> Iterator[tuple[int, int, float]]:
    """Every pair i < j with the larger of E_ij and E_ji; pairs without a finite number are left out."""
    table = graph.get("edge_strength", ())
    for i in range(len(table)):
        for j in range(i + 1, len(table)):
            strengths = [float(value) for value in (table[i][j], table[j][i]) if is_number(value)]
            if strengths:
                yield i, j, max(strengths)


def is_free(graph: Mapping[str, Any]) -> bool:
    """Whether p(N) has a weight of its own for every cell and no graph, so that edges have no strength."""
    table = graph.get("edge_strength", ())
    return len(table) > 1 and not any(is_number(value) for row in table for value in row)


def between(graph: Mapping[str, Any], first: int, second: int) -> float | None:
    """Mutual information of two nodes in bits; None where it is not known."""
    table = graph.get("mutual_information")
    nats = table[first][second] if table else None
    return float(nats) / log(2) if nats is not None and is_number(nats) else None


def information_text(bits: float) -> str:
    """`0.53 bit`, or that it is practically nothing."""
    return f"{bits:.2f} bit" if bits >= INDEPENDENT_BITS else f"< {INDEPENDENT_BITS} bit"


# Which arrows of a class are declared and not found: what a reader has to be told beside every arrow.


_NAME_WIDTH = 24
_MOST_EDGES = 6

_BY_CLASS = "an arrow: directed by the class, assuming no hidden common cause and no selection"


def declared_arrows(graph: np.ndarray) -> np.ndarray:
    """Arrows that are there because something was declared of the graph; observations alone leave them open.

    Skeleton and v-structures of the class are those of its graphs with or without knowledge. By the rules of Meek
    (1995) they have the arrows that observations tell; all others need what was declared.

    Args:
        graph: `[L, L]` of 0 and 1, row = cause, column = effect, 1 both ways where the direction is open.

    Returns:
        bool `[L, L]`.
    """
    told = compelled(meek_closure(np.asarray(v_structures(graph).any(-1)), skeleton(graph)))
    declared: np.ndarray = compelled(graph) & ~told
    return declared


def arrow_notes(graph: Sequence[Sequence[int]], nodes: Sequence[str], arrow: str = "->") -> list[str]:
    """What the arrows of a class rest on: the class, what was declared, or both; empty where there is no arrow.

    Args:
        graph: As `declared_arrows` has it.
        nodes: Names.
        arrow: What stands between cause and effect.
    """
    matrix = np.array(graph, dtype=bool)
    declared = declared_arrows(matrix)
    found = [_BY_CLASS] if (compelled(matrix) & ~declared).any() else []
    if declared.any():
        names = [shorten(printable(name), _NAME_WIDTH) for name in nodes]
        edges = [f"{names[i]} {arrow} {names[j]}" for i, j in np.argwhere(declared)]
        found.append(f"directed by what was declared, not by the data: {_listed_edges(edges)}")
    return found


def is_declared(posterior: Mapping[str, Any]) -> bool:
    """Whether something is known of the graph beforehand."""
    known = posterior.get("knowledge") or {}
    return bool(known.get("forbidden") or known.get("required"))


def declared_sentence(posterior: Mapping[str, Any]) -> str:
    """`Declared: not there alloy->treatment.`; empty where nothing was."""
    known = posterior.get("knowledge") or {}
    parts = [f"{word} {_listed_edges(known[key])}" for key, word in _WORDS.items() if known.get(key)]
    return f"Declared: {'; '.join(parts)}." if parts else ""


_WORDS = {"forbidden": "not there", "required": "there"}


def _listed_edges(edges: Sequence[str]) -> str:
    more = f" and {len(edges) - _MOST_EDGES} more" if len(edges) > _MOST_EDGES else ""
    return ", ".join(map(printable, edges[:_MOST_EDGES])) + more


# What a summary says of the equivalence class that exact search found.


_MOST_NEAR = 4


class Signs(NamedTuple):
    """What stands between two nodes: an arrow, the same the other way round, a line where the direction is open."""

    arrow: str = "->"
    back: str = "<-"
    line: str = "--"


def class_sentence(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """The class, drawn along its edges, and how sure it is; empty where it was not searched."""
    found = summary.get("graph", {}).get("equivalence_class")
    if not found:
        return ""
    drawn = drawn_class(found["cpdag"], found["node_names"], signs or Signs())
    ahead = gap_text(found["gap_nats"])
    notes = "".join(f"; {note}" for note in (ahead, *_notes(summary, found, signs or Signs())) if note)
    searched = f"Equivalence class by exact search (BIC): {drawn}{notes}.{_near(found, signs or Signs())}"
    return f"{_given_sentence(summary)}{searched}"


def _given_sentence(summary: Mapping[str, Any]) -> str:
    """The graph that the fit was told; what was searched does not use it."""
    edges = summary["graph"].get("given")
    if edges is None:
        return ""
    told = ", ".join(map(printable, edges)) or "no edge"
    return f"p(N) has the graph that was given: {told}. Searched without regard to it: "


def _notes(summary: Mapping[str, Any], found: Mapping[str, Any], signs: Signs) -> Iterator[str]:
    graph = np.array(found["cpdag"], dtype=bool)
    if (graph & graph.T).any():
        yield "a line: direction not identified" + (" by observations alone" if causal_graph_sentence(summary) else "")
    yield from arrow_notes(found["cpdag"], found["node_names"], signs.arrow)


def _near(found: Mapping[str, Any], signs: Signs) -> str:
    """Which other classes are not decided against."""
    near = found.get("near") or []
    if not near:
        return ""
    listed = "; ".join(
        f"{drawn_class(rival['cpdag'], found['node_names'], signs)} ({format_number(rival['behind_nats'], 1)} behind)"
        for rival in near[:_MOST_NEAR]
    )
    more = f"; and {len(near) - _MOST_NEAR} more" if len(near) > _MOST_NEAR else ""
    return f" Within {UNDECIDED_NATS:.0f} nats: {listed}{more}."


def drawn_class(cpdag: Sequence[Sequence[int]], nodes: Sequence[str], signs: Signs) -> str:
    """All edges along as long walks as one comes by: `hue -> shift <- radius`; `no edge` where there is none."""
    graph = np.array(cpdag, dtype=bool)
    names = [shorten(printable(name), _NAME_WIDTH) for name in nodes]
    table = np.array([["", signs.back], [signs.arrow, signs.line]])[graph.astype(int), graph.T.astype(int)]
    return ", ".join(_walk(path, names, table) for path in _paths(graph | graph.T)) or "no edge"


def _walk(path: Sequence[int], names: Sequence[str], signs: np.ndarray) -> str:
    return " ".join([names[path[0]], *(f"{signs[i, j]} {names[j]}" for i, j in pairwise(path))])


def _paths(joined: np.ndarray) -> list[list[int]]:
    """Every edge once, along as long walks as one comes by, from the ends of chains first."""
    left, paths = joined.copy(), []
    while left.any():
        degree = left.sum(1)
        path = [int(min(np.flatnonzero(degree), key=lambda node: (degree[node] % 2 == 0, node)))]
        while left[path[-1]].any():
            after = int(left[path[-1]].argmax())
            left[path[-1], after] = left[after, path[-1]] = False
            path.append(after)
        paths.append(path)
    return paths


# What a summary says of the posterior over graphs, beside the class.


Summary = Mapping[str, Any]

DOUBTFUL = 0.05
"""Pairs that are joined with at least this probability are told, even where the best class lacks them."""

_COMMAND = "python -m inference.graph RUN"
_MOST_TEXTS = 4


def posterior_sentence(summary: Summary, signs: Signs | None = None) -> str:
    """How probable the class is among all, what else may be joined, and whether the score decides.

    Empty where nodes have no meaning; where the posterior was left out, which command computes it.

    Args:
        summary: The summary.
        signs: What stands between the nodes.
    """
    graph = summary.get("graph", {})
    if not is_named(summary) or len(graph.get("node_names", ())) < 2:
        return ""
    if not graph.get("posterior"):
        is_told = causal_graph_sentence(summary) or graph.get("equivalence_class")
        return "" if is_told else f"Posterior over graphs: takes longer than a second; {_COMMAND} computes it."
    return " ".join(_posterior_sentences(graph, signs or Signs()))


def short_pairs(posterior: Summary) -> set[frozenset[str]]:
    """Pairs of nodes that have too many outcomes for the samples to say whether they are joined."""
    return {frozenset(pair) for pair in posterior.get("too_few_samples", ())}  # older runs do not say


def _posterior_sentences(graph: Summary, signs: Signs) -> Iterator[str]:
    found, searched = graph["posterior"], graph.get("equivalence_class") or {}
    top = found["classes"][0]
    share = format_number(top["probability"], 2)
    short = [" and ".join(map(printable, pair)) for pair in found.get("too_few_samples", ())]
    if short:
        yield f"Too few samples for the outcomes of {_listed_texts(short)} to say whether they are joined."
    elif top["cpdag"] == searched.get("cpdag"):
        among = "all that agree with what was declared" if is_declared(found) else "all"
        yield f"Probability of this class among {among}: {share}."
    else:
        yield f"Most probable class of graphs (BIC): {drawn_class(top['cpdag'], found['nodes'], signs)} ({share})."
    doubtful = [f"{first} and {second} {format_number(p, 2)}" for first, second, p in _doubtful_pairs(found)]
    if doubtful:
        yield f"Not joined in it, yet with probability: {_listed_texts(doubtful)}."
    changes = [" and ".join(map(printable, pair)) for pair in (found.get("sensitivity") or {}).get("changes", ())]
    if changes:
        yield f"Another score changes the verdict on {_listed_texts(changes)}: {_COMMAND}."
    if graph.get("variational"):
        yield f"The guide over graphs joins {_listed_texts(_guided(graph))} (too sure of directions: docs/mcmc.md)."


def _doubtful_pairs(found: Summary) -> list[tuple[str, str, float]]:
    """Pairs that the most probable class does not join, the most probable first."""
    joined, best = found["adjacency_probability"], found["classes"][0]["cpdag"]
    names = [printable(name) for name in found["nodes"]]
    pairs = [
        (names[i], names[j], float(joined[i][j]))
        for i, j in combinations(range(len(names)), 2)
        if joined[i][j] >= DOUBTFUL
        and not (best[i][j] or best[j][i])
        and {found["nodes"][i], found["nodes"][j]} not in short_pairs(found)
    ]
    return sorted(pairs, key=lambda pair: -pair[2])


def _guided(graph: Summary) -> list[str]:
    """How probable every pair is joined by `--guide.graph bayesian`."""
    edge, names = graph["variational"]["edge_probability"], [printable(name) for name in graph["node_names"]]
    pairs = combinations(range(len(names)), 2)
    return [f"{names[i]} and {names[j]} with {format_number(edge[i][j] + edge[j][i], 2)}" for i, j in pairs]


def _listed_texts(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _MOST_TEXTS} more" if len(texts) > _MOST_TEXTS else ""
    return "; ".join(texts[:_MOST_TEXTS]) + more


# The one graph of a summary that figure, table and report show, with no more directions than were identified.


Basis = Literal["given", "interventions", "class", "strengths"]


class ShownEdge(NamedTuple):
    """A pair of nodes that is joined; the arrow, where there is one, runs from the first to the second.

    `bits`: their mutual information; `probability`: that they are joined, by the posterior over graphs; None where
    these are not known.
    """

    first: int
    second: int
    is_directed: bool
    bits: float | None
    strength: float | None = None
    probability: float | None = None


class ShownGraph(NamedTuple):
    """Nodes, edges, and what they rest on.

    Attributes:
        names: Of the nodes.
        edges: Lines run from the node that comes first.
        basis: `given`: the graph that the fit was told. `interventions`: the best graph that these tell, with an arrow
            where the graphs with the edge that way round have at least 95 % of the weight of those that have it.
            `class`: the most probable class of the posterior, else the best by exact search, arrows where it is
            compelled. `strengths`: what was trained along, lines only.
        doubtful: Pairs that the class does not join, and that are joined with a probability of at least 5 %.
    """

    names: tuple[str, ...]
    edges: tuple[ShownEdge, ...]
    basis: Basis
    doubtful: tuple[ShownEdge, ...] = ()

    def matrix(self) -> list[list[int]]:
        """`[L, L]`, row = cause, column = effect, 1 both ways where an edge has no direction."""
        found = [[0] * len(self.names) for _ in self.names]
        for edge in self.edges:
            found[edge.first][edge.second] = 1
            found[edge.second][edge.first] = int(not edge.is_directed)
        return found


def shown_graph(summary: Summary) -> ShownGraph:
    """What to show: the graph that was given, else what interventions told, else the class, else the soft strengths."""
    graph = summary.get("graph", {})
    names = tuple(printable(name) for name in graph.get("node_names", ()))
    if is_named(summary) and graph.get("given") is not None:
        return ShownGraph(names, _edges(graph, _given_matrix(graph), _joined(graph)), "given")
    if is_named(summary) and causal_graph_sentence(summary):
        return ShownGraph(names, _edges(graph, interventional_graph(summary["labelling"]["details"])), "interventions")
    matrix = _class(graph)
    if is_named(summary) and matrix is not None:
        return ShownGraph(names, _edges(graph, matrix, _joined(graph)), "class", _doubtful_edges(graph, matrix))
    pairs = [ShownEdge(i, j, False, between(graph, i, j), strength) for i, j, strength in joined_pairs(graph)]
    return ShownGraph(names, tuple(pairs), "strengths")


def _given_matrix(graph: Summary) -> np.ndarray:
    """The graph that the fit was told, `[L, L]`."""
    nodes = graph["node_names"]
    matrix = np.zeros((len(nodes), len(nodes)), dtype=int)
    for text in graph["given"]:
        cause, effect = read_edge("graph.given", text, nodes)
        matrix[nodes.index(cause), nodes.index(effect)] = 1
    return matrix


def _class(graph: Summary) -> np.ndarray | None:
    """The class that is shown, `[L, L]`; the posterior's `cpdag` is that of its best graph, which may be another."""
    if graph.get("posterior"):
        return np.array(graph["posterior"]["classes"][0]["cpdag"])
    searched = graph.get("equivalence_class")
    return np.array(searched["cpdag"]) if searched else None


def _joined(graph: Summary) -> np.ndarray | None:
    """Probability that two nodes are joined, `[L, L]`, where there is a posterior."""
    found = graph.get("posterior")
    return np.array(found["adjacency_probability"], dtype=float) if found else None


def _doubtful_edges(graph: Summary, matrix: np.ndarray) -> tuple[ShownEdge, ...]:
    joined = _joined(graph)
    if joined is None:
        return ()
    pairs = np.argwhere(np.triu((joined >= DOUBTFUL) & (matrix == 0) & (matrix.T == 0), 1))
    return tuple(ShownEdge(int(i), int(j), False, None, None, float(joined[i, j])) for i, j in pairs)


def _edges(graph: Summary, matrix: np.ndarray, joined: np.ndarray | None = None) -> tuple[ShownEdge, ...]:
    is_line = (matrix != 0) & (matrix.T != 0)
    return tuple(
        ShownEdge(
            int(i),
            int(j),
            not is_line[i, j],
            between(graph, int(i), int(j)),
            probability=None if joined is None else float(joined[i, j]),
        )
        for i, j in np.argwhere(matrix)
        if i < j or not is_line[i, j]
    )


FREE = "no graph in the model: p(N) has a weight of its own for every cell"

_HEADINGS = {
    "given": "Edges of the graph that was given (cause -> effect), with mutual information",
    "interventions": "Edges by the interventions (cause -> effect), with mutual information",
    "class": "Edges of the class, with mutual information",
}


def edges_heading(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """What the listed edges rest on; empty where none is listed."""
    found = shown_graph(summary)
    if found.basis == "strengths" or not found.edges:
        return ""
    heading = _HEADINGS[found.basis].replace("->", (signs or Signs()).arrow)
    if any(edge.probability is not None for edge in found.edges):
        heading = heading.replace("with mutual", "with probability (joined, whichever way round) and mutual")
    return heading


def edge_texts(summary: Mapping[str, Any], width: int, signs: Signs | None = None) -> list[str]:
    """A text per edge that can be believed, with no arrow that is not identified.

    Soft strengths of the trained graph are none: they read as probabilities, and of nodes without a meaning every
    labelling has others.

    Args:
        summary: The summary.
        width: Most characters of a name.
        signs: What stands between the nodes.
    """
    found = shown_graph(summary)
    return [] if found.basis == "strengths" else [_text(found, edge, width, signs or Signs()) for edge in found.edges]


def edges_remark(summary: Mapping[str, Any]) -> str:
    """Why no edge is listed, where nothing else says so."""
    if shown_graph(summary).basis == "strengths":
        if is_free(summary["graph"]):
            return FREE
        return "" if is_named(summary) else "no edge is shown: nodes without a meaning have others in every labelling"
    return "" if edge_texts(summary, 1) or class_sentence(summary) else "no edge"


def _text(found: ShownGraph, edge: ShownEdge, width: int, signs: Signs) -> str:
    first, second = (shorten(found.names[node], width) for node in (edge.first, edge.second))
    joined = f"{first} {signs.arrow if edge.is_directed else signs.line} {second}"
    bits = [] if edge.bits is None else [information_text(edge.bits)]
    numbers = [*([] if edge.probability is None else [format_number(edge.probability, 2)]), *bits]
    return f"{joined}  {', '.join(numbers)}" if numbers else joined


# What a summary says of the graph that a classical learner found after the fit, or why it found none.


_NAMES: Mapping[str, str] = {"pc": "PC", "ges": "GES", "lingam": "LiNGAM"}


def learned_sentence(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """Method, settings and edges, or why the learner did not run; empty without a learner.

    Args:
        summary: The summary.
        signs: What stands between the nodes.
    """
    found = summary.get("graph", {}).get("posthoc")
    if not found:
        return left_out_sentence(summary)
    drawn = drawn_class(found["cpdag"], found["node_names"], signs or Signs())
    taken = "latent means" if found["method"] == "lingam" else "most probable cells"
    told = f"{_NAMES[found['method']]} after the fit ({found['settings']}; {taken} taken for certain): {drawn}."
    pairs = ", ".join(" and ".join(map(printable, pair)) for pair in found["conflicts"])
    return f"{told} It directs both ways, so that they are left open: {pairs}." if pairs else told


def left_out_sentence(summary: Mapping[str, Any]) -> str:
    """That the learner of the configuration did not run, and why; empty where it did, and without one."""
    found = summary.get("graph", {}).get("posthoc_left_out")
    return f"{_NAMES[found['method']]} after the fit did not run: {found['reason']}." if found else ""


# How much two nodes say of each other under p(N): what an edge strength does not tell.


def mutual_information(log_joint: np.ndarray) -> np.ndarray:
    r"""Mutual information of every pair of nodes under the learned p(N), in nats.

    $$I(N_i; N_j) = \sum_{a, b} p(N_i = a, N_j = b) \log \frac{p(N_i = a, N_j = b)}{p(N_i = a)\, p(N_j = b)}$$

    The nodes beside i and j are summed out. It is 0 where the two are independent and at most the smaller of their
    entropies; in bits it is divided by log 2. Source: Cover and Thomas, Elements of Information Theory, section 2.3.

    Args:
        log_joint: log p(N), `[C_1, ..., C_L]`, up to a constant.

    Returns:
        `[L, L]`, symmetric; the diagonal is 0 by convention (a node holds its whole entropy of itself). NaN where
        log p(N) is not finite.
    """
    joint = np.exp(log_joint - log_joint.max())
    joint = joint / joint.sum()
    found = np.zeros((joint.ndim, joint.ndim))
    for i, j in combinations(range(joint.ndim), 2):
        others = tuple(axis for axis in range(joint.ndim) if axis not in (i, j))
        found[i, j] = found[j, i] = information.mutual_information(joint.sum(axis=others))
    return found


# A posterior over graphs for people: in words, then every pair of nodes, then how much depends on the score.


Posterior = Mapping[str, Any]

_WIDTH = 80
_TABLE_NAME_WIDTH = 14
_PAIR_WIDTH = 2 * _TABLE_NAME_WIDTH + 4
_COLUMN = 9
_MOST_CLASSES = 8
_MOST_PAIRS = 45

_ASSUMPTIONS = "Assumed: no hidden common cause, no selection, and that the clusters are what their names say."
_ASSUMPTIONS_OF_TABLES = (
    "Assumed: no common cause of two columns that is no column itself, and no selection of rows by them."
)
_GOOD_R_HAT = 1.05
_FEW_DRAWS = 100


def graph_table(found: Posterior) -> str:
    """Plain text of at most 80 columns.

    Args:
        found: As `inference.graph`'s JSON has it.
    """
    assumptions = _ASSUMPTIONS_OF_TABLES if "levels" in found else _ASSUMPTIONS
    classes = [] if short_pairs(found) else _classes(found)
    tables = [] if _says_nothing(found) else [_pairs(found), classes, _sensitivity(found)]
    parts = [_words(found), *tables, _wrapped(assumptions)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _says_nothing(found: Posterior) -> bool:
    n_nodes = len(found["nodes"])
    return n_nodes > 1 and len(short_pairs(found)) == n_nodes * (n_nodes - 1) // 2


def _words(found: Posterior) -> list[str]:
    return [line for sentence in _table_sentences(found) for line in _wrapped(sentence)]


def _table_sentences(found: Posterior) -> Iterator[str]:
    if not found.get("is_named", True):
        yield (
            f"Warning: the clusters are unnamed. This is the posterior under one of {_labellings(found)} labellings "
            "that fit equally well; under another it is another."
        )
    n, independent = found["n_samples"], found["n_independent"]
    groups = "" if n == independent else f", which count as {independent} groups"
    yield f"Posterior over graphs by {_score(found)} from {n} samples{groups}; {_prior(found)}; {found['method']}."
    if short_pairs(found):
        yield _shortage(found)
    else:
        drawn = drawn_class(found["classes"][0]["cpdag"], found["nodes"], Signs())
        yield f"Most probable class of graphs: {drawn} ({_two(found['classes'][0]['probability'])})."
        yield from _best_graph(found, drawn)
    yield from _declared(found)
    yield from _information(found)
    yield from _draws(found)


def _shortage(found: Posterior) -> str:
    """Which pairs the samples say nothing of; nor do they of whole graphs then."""
    pairs = [" and ".join(map(printable, pair)) for pair in found["too_few_samples"]]
    more = ", ..." if len(pairs) > _MOST_CLASSES else ""
    listed = "any two of them" if _says_nothing(found) else f"{'; '.join(pairs[:_MOST_CLASSES])}{more}"
    return (
        f"Warning: {found['n_independent']} samples are fewer than {ROWS_PER_CELL} for each combination of the levels "
        f"of {listed}. Whether these are joined would be the word of the score, not of the data, so that neither they "
        "nor whole graphs are shown: put levels together, or take more samples."
    )


def _best_graph(found: Posterior, drawn: str) -> Iterator[str]:
    """The class of the best graph, where the most probable one is another: it may have more graphs."""
    best = drawn_class(found["cpdag"], found["nodes"], Signs())
    if best != drawn:
        yield f"The class of the one graph with the best score is another: {best}."


def _declared(found: Posterior) -> Iterator[str]:
    """What was declared, and which arrows of the most probable class are there for that alone."""
    if is_declared(found):
        notes = [note for note in arrow_notes(found["classes"][0]["cpdag"], found["nodes"]) if "declared" in note]
        yield " ".join([declared_sentence(found), *(f"{note[0].upper()}{note[1:]}." for note in notes)])


def _draws(found: Posterior) -> Iterator[str]:
    about = found.get("diagnostics") or {}
    if "chains" in about:
        yield from _chains(about)
    elif "draws" in about:
        yield f"Edges are summed over all graphs; classes come from {about['draws']} independent draws of graphs."


def _chains(about: Mapping[str, Any]) -> Iterator[str]:
    yield f"{about['chains']} chains of {about['draws']} draws."
    if about["ess"] is not None:
        r_hat = inf if about["r_hat"] is None else about["r_hat"]  # files have no infinity
        doubtful = r_hat > _GOOD_R_HAT or about["ess"] < _FEW_DRAWS
        yield (
            ("Warning: the chains do not agree well; take the numbers as rough. " if doubtful else "")
            + f"Of edges and score, the largest R-hat is {r_hat:.3f}, the smallest effective number of draws "
            f"{about['ess']:.0f}."
        )


def _labellings(found: Posterior) -> str:
    count = found.get("equivalent_labellings")
    return "many" if count is None else str(count)


def _information(found: Posterior) -> Iterator[str]:
    share = (found.get("diagnostics") or {}).get("information_share")
    if share is not None and share < 0.995:
        yield (
            f"Clusters overlap: their counts stand for {100 * share:.0f} % of the samples' information, and graphs are "
            "scored by these counts, not by the likelihood of the mixture."
        )


def _score(found: Posterior) -> str:
    size = found["equivalent_sample_size"]
    return "BIC" if size is None else f"BDeu (equivalent sample size {size:g})"


def _prior(found: Posterior) -> str:
    known = [*found["knowledge"]["forbidden"], *found["knowledge"]["required"]]
    which = "the graphs that agree with what is known" if known else "all graphs"
    odds = found.get("edge_prior") or 0.0
    return f"{which} alike beforehand" if not odds else f"{which}, log-odds {odds:g} for every edge beforehand"


def _pairs(found: Posterior) -> list[str]:
    """A row per pair, the most probably joined first."""
    joined = np.array(found["adjacency_probability"])
    pairs = sorted(combinations(range(len(joined)), 2), key=lambda pair: -joined[pair])
    rows = [_pair_row(found, i, j) for i, j in pairs[:_MOST_PAIRS]]
    more = [f"and {len(pairs) - _MOST_PAIRS} pairs that are less probable"] if len(pairs) > _MOST_PAIRS else []
    head = _row("probability of a pair", ("joined", "->", "<-", "sure ->", "sure <-"))
    told = " that agree with what was declared" if is_declared(found) else ""
    note = f"sure: directed that way in all graphs of the class{told}; the rest of -> and <- is the prior's."
    note += " -: too few samples to say." if short_pairs(found) else ""
    return [head, *rows, *more, *_wrapped(note)] if rows else []


def _pair_row(found: Posterior, i: int, j: int) -> str:
    edge, sure = found["edge_probability"], found["compelled_probability"]
    numbers = (found["adjacency_probability"][i][j], edge[i][j], edge[j][i], sure[i][j], sure[j][i])
    return _row(_pair(found, i, j), ["-"] * len(numbers) if _is_short(found, i, j) else [_two(x) for x in numbers])


def _is_short(found: Posterior, i: int, j: int) -> bool:
    return {found["nodes"][i], found["nodes"][j]} in short_pairs(found)


def _classes(found: Posterior) -> list[str]:
    listed, total = found["classes"], found.get("n_classes", len(found["classes"]))
    lines = [
        f"  {_two(entry['probability'])}  {line}" if first else f"        {line}"
        for entry in listed[:_MOST_CLASSES]
        for first, line in _flagged(_wrapped(drawn_class(entry["cpdag"], found["nodes"], Signs()), _WIDTH - 8))
    ]
    plural = "class carries" if total == 1 else "classes carry"
    more = [f"  and {total - _MOST_CLASSES} more"] if total > _MOST_CLASSES else []
    return [f"{total} {plural} 95 % of the probability:", *lines, *more]


def _flagged(lines: Sequence[str]) -> list[tuple[bool, str]]:
    return [(number == 0, line) for number, line in enumerate(lines)]


def _sensitivity(found: Posterior) -> list[str]:
    compared = found.get("sensitivity")
    if not compared:
        return []
    names, tables = list(compared["scores"]), [np.array(t["edge_probability"]) for t in compared["scores"].values()]
    every = combinations(range(len(found["nodes"])), 2)
    pairs = [(i, j) for i, j in every if not _is_short(found, i, j)][:_MOST_PAIRS]
    rows = [_row(_pair(found, i, j), [_two(table[i, j] + table[j, i]) for table in tables]) for i, j in pairs]
    return [
        _row("joined, by another score", names),
        *rows,
        *_wrapped(_changes([pair for pair in compared["changes"] if set(pair) not in short_pairs(found)])),
    ]


def _changes(changes: Sequence[Sequence[str]]) -> str:
    if not changes:
        return "The verdict on every pair (no edge, joined, directed) is the same by all of them."
    listed = "; ".join(" and ".join(map(printable, pair)) for pair in changes)
    return f"Warning: the verdict depends on the score for {listed}."


def _pair(found: Posterior, i: int, j: int) -> str:
    first, second = (shorten(printable(found["nodes"][node]), _TABLE_NAME_WIDTH) for node in (i, j))
    return f"{first}, {second}"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{_PAIR_WIDTH}}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells)


def _two(value: float) -> str:
    return format_number(float(value), 2)


def _wrapped(text: str, width: int = _WIDTH) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
