"""p(N) as it is, as it is where a node happens to have an outcome, and as it would be if it were set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from causalpima.inference.analyses.cross_modal import found_in
from causalpima.inference.clusters.environments import interventional_joint
from causalpima.inference.data.roles import observational_rows
from causalpima.inference.findings.meaning import (
    causal_graph_sentence,
    interventional_graph,
    is_named,
    withheld_sentence,
)
from causalpima.inference.findings.posterior import check_groups, node_likelihood
from causalpima.inference.graphs.dags import class_members, is_acyclic
from causalpima.inference.graphs.hidden import bootstrap_weights, group_weights, mixture_shares
from causalpima.inference.graphs.interventions import Setting, conditioned, descendants, intervened, parent_support
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.store.text import printable
from causalpima.inference.training.fitted_run import FittedRun, load_run

__all__ = [
    "CellShares",
    "GraphSet",
    "QuerySource",
    "Question",
    "Scenario",
    "cell_shares",
    "check_named",
    "drawn_graph",
    "effects_given",
    "graph_set",
    "no_graph",
    "observed_scenario",
    "pairs_of",
    "read_question",
    "scenarios_of",
    "source_of_run",
    "thinnest_row",
]


# The graphs that a question is answered for: all that the fit does not tell apart, or carries with notable weight.


GraphBasis = Literal["none", "one node", "given", "interventions", "posterior", "class"]
_MOST_CLASSES = 50
_MOST_GRAPHS = 2000


class GraphSet(NamedTuple):
    """Graphs and what they rest on.

    Attributes:
        dags: `[G, L, L]`, row = cause, column = effect.
        weights: Of the graphs, `[G]`, sum 1; the same within an equivalence class.
        class_of: Number of the equivalence class of each graph, `[G]`: these have the same p(N).
        basis: Where they come from.
        sentence: The same for people, as an assumption.
    """

    dags: np.ndarray
    weights: np.ndarray
    class_of: np.ndarray
    basis: GraphBasis
    sentence: str


def graph_set(summary: Mapping[str, Any], given: np.ndarray | None = None) -> GraphSet:
    """The graphs of a finished fit whose nodes are named.

    A graph that was given comes first, then what interventions told, then the posterior over graphs, then the best
    equivalence class, with those that it is not clearly ahead of.

    Args:
        summary: Of the fit.
        given: The graph that the fit was told, `[L, L]`; None: it was told none.

    Raises:
        ValueError: None was searched.
    """
    graph, n_nodes = summary["graph"], len(summary["graph"]["node_names"])
    if n_nodes == 1:
        return _of([(np.zeros((1, 1, 1), dtype=np.int8), 1.0)], "one node", "there is one node, and no graph")
    if given is not None:
        return _of([(given[None].astype(np.int8), 1.0)], "given", "the graph is the one that was given")
    if is_named(summary) and causal_graph_sentence(summary):
        return _of_interventions(summary)
    if graph.get("posterior"):
        return _of_posterior(graph["posterior"])
    if graph.get("equivalence_class"):
        return _of_class(graph["equivalence_class"])
    raise ValueError(
        f"graph: expected a run with a searched graph, got {n_nodes} nodes without one; a posterior over graphs is "
        "computed for up to five nodes (docs/dag.md), use fewer"
    )


def no_graph(n_nodes: int) -> GraphSet:
    """For what needs none: one graph with all edges, which allows every p(N)."""
    complete = np.triu(np.ones((1, n_nodes, n_nodes), dtype=np.int8), 1)
    return _of([(complete, 1.0)], "none", "no graph: nothing is set")


def drawn_graph(dag: np.ndarray, names: Sequence[str]) -> str:
    """`A -> B, B -> C`."""
    edges = [f"{printable(names[i])} -> {printable(names[j])}" for i, j in np.argwhere(dag)]
    return ", ".join(edges) or "no edge"


def _of(classes: Sequence[tuple[np.ndarray, float]], basis: GraphBasis, sentence: str) -> GraphSet:
    """From members and weight of every class."""
    weights = np.concatenate([np.full(len(members), weight / len(members)) for members, weight in classes])
    class_of = np.repeat(np.arange(len(classes)), [len(members) for members, _ in classes])
    return GraphSet(
        np.concatenate([members for members, _ in classes]), weights / weights.sum(), class_of, basis, sentence
    )


def _of_interventions(summary: Mapping[str, Any]) -> GraphSet:
    matrix = interventional_graph(summary["labelling"]["details"])
    dags = _orientations(matrix)
    classes = [(np.stack([dag]), 1.0 / len(dags)) for dag in dags]
    return _of(classes, "interventions", f"the graph is the one that the interventions told{_which(len(dags))}")


def _which(count: int) -> str:
    return "" if count == 1 else f", which leave {count} ways to direct it"


def _orientations(graph: np.ndarray) -> list[np.ndarray]:
    """All acyclic ways to direct the edges that are open."""
    pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(graph & graph.T))]
    found = []
    for flips in product((False, True), repeat=len(pairs)):
        dag = (graph & ~graph.T).astype(np.int8)
        for (i, j), flip in zip(pairs, flips, strict=True):
            dag[(j, i) if flip else (i, j)] = 1
        if bool(is_acyclic(dag)):
            found.append(dag)
    return found


def _of_posterior(found: Mapping[str, Any]) -> GraphSet:
    """The classes that carry 95 %, at most 50 of them and no more after 2000 graphs."""
    classes: list[tuple[np.ndarray, float]] = []
    for entry in found["classes"][:_MOST_CLASSES]:
        if sum(len(members) for members, _ in classes) < _MOST_GRAPHS:
            classes.append((class_members(np.array(entry["cpdag"])), float(entry["probability"])))
    mass = sum(weight for _, weight in classes)
    count = sum(len(members) for members, _ in classes)
    sentence = (
        f"the graph is one of {_counted(count, 'graph')} in {_counted(len(classes), 'equivalence class')} that carry "
        f"{mass:.1%} of the posterior{_knowledge(found)}"
    )
    return _of(classes, "posterior", sentence)


def _knowledge(found: Mapping[str, Any]) -> str:
    declared = any((found.get("knowledge") or {}).values())
    return ", given what was declared of the graph" if declared else ""


def _of_class(found: Mapping[str, Any]) -> GraphSet:
    """The best class, and those within 3 nats of BIC, which weigh by it."""
    rivals = [(np.array(rival["cpdag"]), float(rival["behind_nats"])) for rival in found.get("near") or []]
    weighed = [(np.array(found["cpdag"]), 0.0), *rivals]
    classes = [(class_members(graph), float(np.exp(-behind))) for graph, behind in weighed]
    count = sum(len(members) for members, _ in classes)
    which = "the best equivalence class" if len(classes) == 1 else f"the best {len(classes)} equivalence classes"
    sentence = f"the graph is one of {_counted(count, 'graph')} of {which} by exact search (BIC)"
    return _of([(members, weight * len(members)) for members, weight in classes], "class", sentence)


def _counted(count: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"


# What is asked: nodes that are set, nodes that are conditioned on, by the names of the run.


_NAMING = "name the clusters (python -m inference.name)"
_MOST_SUGGESTED = 2


@dataclass(frozen=True)
class Question:
    """Outcomes by number of the node.

    Attributes:
        do: Nodes that are set.
        given: Nodes that are conditioned on after that.
    """

    do: Mapping[int, int]
    given: Mapping[int, int]


def pairs_of(flag: str, texts: Sequence[str], outcomes: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """`NODE=OUTCOME` as pairs; names may hold `=` themselves.

    Args:
        flag: `do` or `given`, for messages.
        texts: One per pair.
        outcomes: Outcomes by node.

    Raises:
        ValueError: No pair, or a node twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        node, outcome = _split(flag, text, outcomes)
        if node in found:
            raise ValueError(f"{flag}: expected every node once, got {printable(node)} twice; leave one of them out")
        found[node] = outcome
    return found


def _split(flag: str, text: str, outcomes: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    places = [place for place, character in enumerate(text) if character == "="]
    ways = [(text[:place].strip(), text[place + 1 :].strip()) for place in places]
    if not ways:
        raise ValueError(f"{flag}: expected NODE=OUTCOME, got {printable(text)}; for example {_example(outcomes)}")
    return next(((node, outcome) for node, outcome in ways if outcome in outcomes.get(node, ())), ways[0])


def _example(outcomes: Mapping[str, Sequence[str]]) -> str:
    node, names = next(iter(outcomes.items()))
    return f"{printable(node)}={printable(names[-1])}"


def read_question(
    outcomes: Mapping[str, Sequence[str]], do: Mapping[str, Any] | None, given: Mapping[str, Any] | None
) -> Question:
    """From names to numbers.

    Args:
        outcomes: Outcomes by node, in order.
        do: Outcome by node that is set.
        given: Outcome by node that is conditioned on.

    Raises:
        ValueError: Nothing is asked, a name that is not there, or a node that is both set and conditioned on.
    """
    if not do and not given:
        raise ValueError(f"do: expected NODE=OUTCOME, got nothing to set or to condition on; say {_example(outcomes)}")
    set_, seen = (_numbers(flag, part or {}, outcomes) for flag, part in (("do", do), ("given", given)))
    names = list(outcomes)
    for node in sorted(set(set_) & set(seen)):
        if set_[node] != seen[node]:
            raise ValueError(
                f"given: expected no contradiction to --do, got {printable(names[node])} set to "
                f"{printable(outcomes[names[node]][set_[node]])} and conditioned on another outcome; leave one out"
            )
        raise ValueError(f"given: expected nodes that are not set, got {printable(names[node])} in both; leave one out")
    return Question(set_, seen)


def _numbers(flag: str, pairs: Mapping[str, Any], outcomes: Mapping[str, Sequence[str]]) -> dict[int, int]:
    found = {}
    for node, outcome in pairs.items():
        if node not in outcomes:
            raise ValueError(f"{flag}: expected a node of {_listed(outcomes)}, got {printable(node)}")
        if str(outcome) not in outcomes[node]:
            raise ValueError(
                f"{flag}: expected an outcome of {printable(node)} ({_listed(outcomes[node])}), got "
                f"{printable(outcome)}; choose one of these"
            )
        found[list(outcomes).index(node)] = list(outcomes[node]).index(str(outcome))
    return found


def _listed(names: Any) -> str:
    return ", ".join(map(printable, names))


def check_named(summary: Mapping[str, Any], flag: str = "do") -> None:
    """Refuse questions about nodes that mean nothing.

    Raises:
        ValueError: Some node is not identified; says what would name them.
    """
    if is_named(summary):
        return
    found = summary.get("identifiability") or {}
    identified = _listed(found.get("identified_nodes") or ()) or "none"
    reason = withheld_sentence(summary) or f"of {_listed(summary.get('nodes', {}))} identified: {identified}"
    ways = [_NAMING, *map(printable, (found.get("suggestions") or [])[:_MOST_SUGGESTED])]
    raise ValueError(
        f"{flag}: expected a run all of whose nodes have a meaning, got clusters without names ({reason.rstrip('.')}); "
        f"{'; or '.join(ways)}"
    )


# What a question is answered from: a finished fit, read from its folder or in memory.


@dataclass(frozen=True)
class QuerySource:
    """A finished fit of n samples.

    Attributes:
        fitted: Model, guide, and what is known of the modalities.
        summary: Its summary.
        outcomes: Names of the outcomes of every node, in order.
        responsibilities: q(N|X), `[n, C]`.
        prior: p(N) that they were computed with, `[C]`.
        is_training: Samples that the fit learned from, bool `[n]`.
        environment: Codes of the environments `[n]`, 0 = observational, or None.
        groups: Codes of the groups `[n]`, or None.
        labels: Outcome of each node by labels, `[n, L]`, -1 where none tells it; None: no labels.
        latent: Mean of q(Z|X), `[n, J]`.
        sample_names: Names of the samples, or None.
    """

    fitted: FittedRun
    summary: Mapping[str, Any]
    outcomes: Mapping[str, tuple[str, ...]]
    responsibilities: np.ndarray
    prior: np.ndarray
    is_training: np.ndarray
    environment: np.ndarray | None
    groups: np.ndarray | None
    labels: np.ndarray | None
    latent: np.ndarray
    sample_names: tuple[str, ...] | None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(self.outcomes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of outcomes of every node."""
        return tuple(map(len, self.outcomes.values()))

    @property
    def rows(self) -> np.ndarray:
        """Training samples without intervention, bool `[n]`."""
        return observational_rows(self.is_training, self.environment)

    def given_graph(self) -> np.ndarray | None:
        """The graph that the fit was told (`--model.graph fixed:FILE`), `[L, L]`; None: it was told none.

        Files are read by the command line: a configuration says `fixed`, and has the edges.
        """
        if self.fitted.config.model.graph != "fixed":
            return None
        adjacency: np.ndarray = self.fitted.model.graph.adjacency().cpu().numpy()
        return adjacency

    def log_likelihood(self) -> np.ndarray:
        """log p(x_n, labels of n | c) of these samples up to a constant per sample, `[rows, C]`: what graphs score."""
        labels = None if self.labels is None else self.labels[self.rows]
        return node_likelihood(self.responsibilities[self.rows], np.log(self.prior).reshape(self.sizes), labels)


def source_of_run(path: Path | str, device: str = "cpu") -> QuerySource:
    """Read a run folder.

    Args:
        path: The folder.
        device: Where to put the model.

    Raises:
        ValueError: No finished run, or one of an older version whose file lacks the groups of its samples.
    """
    folder = RunFolder(path)
    fitted = load_run(path, device=device)
    posterior, summary = folder.read_posterior(), folder.read_summary()
    check_groups(posterior, summary)
    found = found_in(posterior, labelling=summary.get("labelling"))
    variational, constant = posterior["variational"].dataset, posterior["constant_data"].dataset
    return QuerySource(
        fitted,
        summary,
        dict(zip(found.node_names, found.outcome_names, strict=True)),
        found.responsibilities,
        found.joint.reshape(-1),
        found.split == "train",
        found.environment,
        found.groups,
        constant["node_label"].to_numpy() if "node_label" in constant else None,
        variational["latent_loc"].to_numpy(),
        _sample_names(variational),
    )


def _sample_names(variational: xr.Dataset) -> tuple[str, ...] | None:
    if "sample_name" not in variational.coords:
        return None
    return tuple(map(str, variational.coords["sample_name"].to_numpy()))


# p(N) of every graph with its uncertainty, as shares of the cells that the tables are read off.


_DRAWS = 200
_MOST_FITS = 1000
_LEAST_DRAWS = 40


class CellShares(NamedTuple):
    """Expected shares of the cells; the tables of a graph are those of its shares.

    Attributes:
        best: Of the fit, per equivalence class, `[K, C_1, ..., C_L]`.
        draws: Of the Bayesian bootstrap, `[K, D, C_1, ..., C_L]`.
        n_samples: Number of samples behind every table; of environments, those of the observational one, at least.
    """

    best: np.ndarray
    draws: np.ndarray
    n_samples: int


def cell_shares(source: QuerySource, graphs: GraphSet, seed: int) -> CellShares:
    """Fit p(N) of every equivalence class to the samples, and to samples that are weighted at random.

    By the likelihood of the mixture; where interventions told the graph, from the expected counts of every environment,
    each table from the environments that left its node alone. A group counts as one sample, as it does for the graph.

    Args:
        source: The fit.
        graphs: Its graphs.
        seed: Of the weights.
    """
    uses_environments = graphs.basis == "interventions"
    rows = source.is_training if uses_environments else source.rows
    groups = None if source.groups is None else source.groups[rows]
    n_classes = int(graphs.class_of[-1]) + 1
    n_draws = min(_DRAWS, max(_LEAST_DRAWS, _MOST_FITS // n_classes))
    weights = bootstrap_weights(int(rows.sum()), groups, n_draws, np.random.default_rng(seed))
    share = group_weights(groups)
    weights = np.concatenate([np.ones((1, weights.shape[1])) if share is None else share[None], weights])
    fit = _of_environments if uses_environments else _of_mixture
    firsts = [graphs.dags[int((graphs.class_of == number).argmax())] for number in range(n_classes)]
    found = fit(source, np.stack(firsts), weights)
    return CellShares(found[:, 0], found[:, 1:], int(source.rows.sum()))


def _of_mixture(source: QuerySource, dags: np.ndarray, weights: np.ndarray) -> np.ndarray:
    log_likelihood = source.log_likelihood()
    return np.stack([mixture_shares(log_likelihood, source.sizes, dag, weights) for dag in dags])


def _of_environments(source: QuerySource, dags: np.ndarray, weights: np.ndarray) -> np.ndarray:
    rows, environment = source.is_training, source.environment
    assert environment is not None
    targets = source.summary["labelling"]["details"]["targets"]
    indicator = (environment[rows][:, None] == np.arange(1 + len(targets))).astype(np.float64)
    counts = np.einsum("dn,ne,nc->dec", weights, indicator, source.responsibilities[rows], optimize=True)
    nodes = np.array([source.nodes.index(node) for node in targets.values()])
    labelling = np.arange(counts.shape[2])
    return np.stack(
        [[interventional_joint(part, labelling, source.sizes, dag, nodes) for part in counts] for dag in dags]
    )


class Scenario(NamedTuple):
    """Probabilities of the cells under each of G graphs, from D draws each.

    Attributes:
        label: What it is: `observed`, `do(A=1)`.
        cells: `[G, C]`.
        draws: `[G, D, C]`.
    """

    label: str
    cells: np.ndarray
    draws: np.ndarray


def scenarios_of(
    question: Question, graphs: GraphSet, shares: CellShares, label: Callable[[str, Setting], str]
) -> dict[str, Scenario]:
    """`observed`; where nodes are set also `seen` and `do`, and one more for every other outcome of a node that is set.

    Args:
        question: What is asked.
        graphs: The graphs.
        shares: p(N) of each.
        label: Name of a scenario from `do` or `seen` and the outcomes.

    Raises:
        ValueError: A condition that cannot come about.
    """
    found = {"observed": observed_scenario(graphs, shares, question.given, "observed")}
    if not question.do:
        return found
    both = {**question.do, **question.given}
    found["seen"] = observed_scenario(graphs, shares, both, label("seen", question.do))
    found["do"] = _scenario(label("do", question.do), graphs, shares, question.do, question.given)
    for setting in _others(question.do, shares.best.shape[1:]):
        name = label("do", setting)
        found[name] = _scenario(name, graphs, shares, setting, question.given)
    return found


def observed_scenario(graphs: GraphSet, shares: CellShares, given: Setting, label: str) -> Scenario:
    """p(N | given), without an intervention."""
    return _scenario(label, graphs, shares, {}, given)


def _others(do: Setting, sizes: tuple[int, ...]) -> list[dict[int, int]]:
    """The other outcomes of every node that is set, the rest as they are set."""
    return [{**do, node: outcome} for node, value in do.items() for outcome in range(sizes[node]) if outcome != value]


def _scenario(label: str, graphs: GraphSet, shares: CellShares, do: Setting, given: Setting) -> Scenario:
    n_nodes = graphs.dags.shape[1]

    def ask(joint: np.ndarray, dag: np.ndarray) -> np.ndarray:
        answer = conditioned(intervened(joint, dag, do), n_nodes, given)
        return answer.reshape(*answer.shape[: answer.ndim - n_nodes], -1)

    pairs = list(zip(graphs.dags, graphs.class_of, strict=True))
    return Scenario(
        label,
        np.stack([ask(shares.best[number], dag) for dag, number in pairs]),
        np.stack([ask(shares.draws[number], dag) for dag, number in pairs]),
    )


def thinnest_row(question: Question, graphs: GraphSet, shares: CellShares) -> float:
    """Expected number of samples behind the thinnest row of a table that the answer rests on, over all graphs."""
    rows = [
        parent_support(shares.best[number], dag, question.do)
        for dag, number in zip(graphs.dags, graphs.class_of, strict=True)
    ]
    return min(rows) * shares.n_samples


def effects_given(question: Question, graphs: GraphSet) -> Mapping[int, int]:
    """Nodes that are conditioned on and are effects of a node that is set: in how many graphs."""
    below = [descendants(dag, list(question.do)) for dag in graphs.dags]
    counts = {node: sum(node in found for found in below) for node in question.given}
    return {node: count for node, count in counts.items() if count}
