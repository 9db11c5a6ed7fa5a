"""Components that are passed as objects in place of those that a configuration names (docs/components.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from causalpima.guides.encoders import Encoder, MakeEncoder
from causalpima.guides.fusion import Fusion, MakeFusion
from causalpima.inference.graphs.dags import GraphKnowledge, edge_text, graph_knowledge, is_acyclic, read_edge
from causalpima.inference.graphs.learners import POSTHOC, check_learner
from causalpima.inference.training.user_code import made, user_component
from causalpima.models.block_mixture import BlockMixture, Mixture, NodeMixture
from causalpima.models.gaussian import own_generators
from causalpima.models.graph.base import EdgeConstraints, NodeGraph
from causalpima.models.graph.bayesian import BayesianGraph
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.graph.relaxed import DagmaGraph, NocurlGraph, NotearsGraph, RelaxedGraph
from causalpima.models.graph.table import FreeGraph, TableGraph
from causalpima.models.latent_priors import LatentPrior, LinearSCM, StandardNormal
from causalpima.models.mixture import Covariance, GaussianMixture, TrainableMixture
from causalpima.models.user_code import names_user_code

if TYPE_CHECKING:
    from causalpima.inference.training.config import FitConfig

__all__ = [
    "GRAPHS",
    "PRIORS",
    "RELAXED",
    "Components",
    "PriorChoice",
    "check_graph",
    "edges_of",
    "given_edges",
    "known_of_graph",
    "make_graph",
]


# Which graph a configuration asks for: learned by gradients, searched, or given.


MOST_SEARCHED = 12
"""Up to so many nodes `exact` searches: the tables of all cells are the limit, not the search."""


MOST_RANDOM = 6
"""Up to so many nodes the guide may be `bayesian`: it looks at every order of them."""


def make_graph(config: FitConfig) -> NodeGraph:
    """The graph of a configuration, initialised from torch's global generator.

    `hodge` is the paper's; the hard graphs have tables in closed form: `exact` begins with the edges that are known.
    All draw what `hodge` draws, so that networks made after it are those of the seed.
    """
    learned = _hodge(config)
    if config.guide.graph == "bayesian":
        return BayesianGraph(config.outcomes, config.graph.temperature_start, constraints=_fixed(config))
    return learned if config.model.graph == "hodge" else _maker(config.model.graph)(config)


def _maker(kind: str) -> Callable[[FitConfig], NodeGraph]:
    """Of the table, or of a module of the user's: a class is made of the outcomes, a function of the configuration."""
    if not names_user_code(kind):
        return GRAPHS[kind]
    found = user_component("model.graph", kind, NodeGraph)
    return lambda config: made(f"model.graph {kind}", found, NodeGraph, (config,), (config.outcomes,))


def _fixed(config: FitConfig) -> EdgeConstraints:
    known = known_of_graph(config)
    return EdgeConstraints(*map(torch.from_numpy, (known.forbidden, known.required)))


def _hodge(config: FitConfig) -> NodeGraph:
    return HodgeGraph(config.outcomes, config.graph.temperature_start, config.graph.edge_rate, _fixed(config))


def _exact(config: FitConfig) -> NodeGraph:
    return TableGraph(config.outcomes, torch.from_numpy(known_of_graph(config).required))


def _given(config: FitConfig) -> NodeGraph:
    return TableGraph(config.outcomes, torch.from_numpy(given_edges(config)))


def _rival(kind: Callable[..., RelaxedGraph], config: FitConfig, **settings: Any) -> NodeGraph:
    """A graph that a penalty keeps from cycles; draws beside torch's global generator, which goes on as if it had not.

    Its tables are the first numbers of that generator from here on: another seed, other tables.
    """
    penalties = config.graph.edge_penalty, config.graph.table_penalty
    with own_generators([]):
        return kind(config.outcomes, *penalties, _fixed(config), **settings)


def _notears(config: FitConfig) -> NodeGraph:
    return _rival(NotearsGraph, config, tolerance=config.graph.acyclicity_tolerance)


def _posthoc(config: FitConfig) -> NodeGraph:
    return FreeGraph(config.outcomes)


_RELAXED: Mapping[str, Callable[[FitConfig], NodeGraph]] = {
    "notears": _notears,
    "dagma": partial(_rival, DagmaGraph),
    "nocurl": partial(_rival, NocurlGraph),
}

RELAXED = tuple(_RELAXED)
"""Graphs that a penalty keeps from cycles while they are trained."""

GRAPHS: Mapping[str, Callable[[FitConfig], NodeGraph]] = {
    "hodge": _hodge,
    "exact": _exact,
    "complete": _given,
    "empty": _given,
    "fixed": _given,
    **_RELAXED,
    **dict.fromkeys(POSTHOC, _posthoc),
}
"""By the name that `model.graph` has. A new one is a file in models/graph/ and a line here (docs/components.md)."""


def given_edges(config: FitConfig) -> np.ndarray:
    """Edges that the configuration gives, bool `[L, L]`: `complete` in the order of the nodes, `fixed` as they stand.

    Raises:
        ValueError: An edge of a node that is not there.
    """
    n_nodes, nodes = len(config.nodes), tuple(config.nodes)
    if config.model.graph == "complete":
        return np.triu(np.ones((n_nodes, n_nodes), dtype=bool), 1)
    return edges_of(config.model.edges, nodes)


def edges_of(texts: tuple[str, ...], nodes: tuple[str, ...], name: str = "model.edges") -> np.ndarray:
    """Edges as a matrix, bool `[L, L]`.

    Args:
        texts: `CAUSE->EFFECT` each.
        nodes: Names of the nodes.
        name: Of what holds them, for messages.

    Raises:
        ValueError: A text that is no edge, or an edge of a node that is not there.
    """
    edges = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for text in texts:
        cause, effect = read_edge(name, text, nodes)
        edges[nodes.index(cause), nodes.index(effect)] = True
    return edges


def known_of_graph(config: FitConfig) -> GraphKnowledge:
    """What is known of the graph over the nodes of a configuration."""
    return graph_knowledge(config.knowledge, tuple(config.nodes))


def check_graph(config: FitConfig) -> None:
    """Refuse a graph that is none, or that contradicts what is known.

    Raises:
        ValueError: No kind of graph, edges beside another kind, nodes that are not there, a cycle, too many nodes to
            search, edges that are known to be otherwise, or knowledge that a learner does not keep to.
    """
    kind = config.model.graph
    if kind not in GRAPHS and not names_user_code(kind):
        raise ValueError(
            f"model.graph: expected {', '.join(GRAPHS)}, fixed:FILE or module:Class, got {kind!r}; a file is read by "
            "the command line alone, in Python pass graph='fixed' and its edges"
        )
    if config.model.edges and kind != "fixed":
        raise ValueError(
            f"model.edges: expected none with model.graph {kind}, got {', '.join(config.model.edges)}; set model.graph "
            "to fixed"
        )
    if kind == "exact" and len(config.nodes) > MOST_SEARCHED:
        raise ValueError(
            f"model.graph: expected at most {MOST_SEARCHED} nodes to search exactly, got {len(config.nodes)}; "
            "leave it at hodge"
        )
    _check_random(config)
    if kind in POSTHOC:
        check_learner(kind, known_of_graph(config))
    if GRAPHS.get(kind) is _given:
        _check_given(given_edges(config), known_of_graph(config), kind)


def _check_random(config: FitConfig) -> None:
    """Refuse a random graph where there is none to be inferred."""
    if config.guide.graph == "point":
        return
    for holds, expected, got in (
        (config.model.graph == "hodge", "model.graph hodge", f"{config.model.graph}, a graph that is not random"),
        (len(config.nodes) <= MOST_RANDOM, f"at most {MOST_RANDOM} nodes", str(len(config.nodes))),
        (config.environments.kind == "none", "environments.kind none", config.environments.kind),
    ):
        if not holds:
            raise ValueError(f"guide.graph: expected {expected} with bayesian, got {got}; set guide.graph to point")


def _check_given(edges: np.ndarray, known: GraphKnowledge, kind: str) -> None:
    if not bool(is_acyclic(edges)):
        raise ValueError(f"model.edges: expected a graph without cycles, got {_listed(edges, known.nodes)}")
    surplus, missing = edges & known.forbidden, known.required & ~edges
    if surplus.any():
        raise ValueError(
            f"model.graph: expected {kind} to agree with what is known, got {_listed(surplus, known.nodes)}, known not "
            "to be there; leave one of the two out"
        )
    if missing.any():
        raise ValueError(
            f"model.graph: expected {kind} to agree with what is known, got no {_listed(missing, known.nodes)}, known "
            "to be there; leave one of the two out"
        )


def _listed(edges: np.ndarray, nodes: tuple[str, ...]) -> str:
    return ", ".join(edge_text(nodes[cause], nodes[effect]) for cause, effect in np.argwhere(edges))


# Which prior a configuration asks for: p(N) and p(Z | N), or p(Z) without cells.


@dataclass(frozen=True)
class PriorChoice:
    """How the parts of a prior are made.

    Attributes:
        graph: p(N).
        mixture: p(Z | N), from the configuration and the names of the modalities in the order of the encoders.
        latent: p(Z) without cells, which is trained in the place of both; None: there is none.
    """

    graph: Callable[[FitConfig], NodeGraph]
    mixture: Callable[[FitConfig, tuple[str, ...]], Mixture]
    latent: Callable[[FitConfig], LatentPrior] | None = None


def _cells(config: FitConfig, modalities: tuple[str, ...]) -> Mixture:
    """One for all of Z, or a block per modality in the order of the encoders."""
    settings = config.model.latent_dim, config.model.covariance
    if not config.mask:
        return _gaussians(config)(math.prod(config.outcomes), *settings)
    visible = {name: config.visible[name] for name in modalities}
    return BlockMixture(config.outcomes, visible, *settings, block=_gaussians(config))


def _cells_of_nodes(config: FitConfig, modalities: tuple[str, ...]) -> Mixture:
    """A block of Z per node."""
    return NodeMixture(config.outcomes, config.model.latent_dim, config.model.covariance, _gaussians(config))


def _gaussians(config: FitConfig) -> Callable[[int, int, Covariance], GaussianMixture]:
    """Components that closed forms set, or that gradients move."""
    if config.mixture.updates == "em":
        return GaussianMixture
    settings = config.mixture.pseudo_count, config.mixture.variance_floor
    return partial(TrainableMixture, pseudo_count=settings[0], variance_floor=settings[1])


def _free(config: FitConfig) -> NodeGraph:
    """p(N) with a weight of its own for every cell, in closed form; draws what `make_graph` draws."""
    make_graph(config)
    return FreeGraph(config.outcomes)


def _linear_scm(config: FitConfig) -> LatentPrior:
    """A linear structural equation model on a block of Z per node; L1 and known edges are those of the graph."""
    known = known_of_graph(config)
    constraints = EdgeConstraints(torch.from_numpy(known.forbidden), torch.from_numpy(known.required))
    settings = config.model.latent_dim, config.graph.edge_rate, constraints
    return LinearSCM(tuple(config.nodes), config.outcomes, *settings)


def _cells_of_all_blocks(config: FitConfig, _modalities: tuple[str, ...]) -> Mixture:
    """One Gaussian mixture on the blocks of all nodes together, read out after the training."""
    size = config.model.latent_dim * len(config.nodes)
    return GaussianMixture(math.prod(config.outcomes), size, config.model.covariance)


PRIORS: Mapping[str, PriorChoice] = {
    "dag": PriorChoice(make_graph, _cells),
    "mixture": PriorChoice(_free, _cells),
    "nodewise": PriorChoice(make_graph, _cells_of_nodes),
    "standard": PriorChoice(make_graph, _cells, lambda config: StandardNormal(config.model.latent_dim)),
    "linear_scm": PriorChoice(make_graph, _cells_of_all_blocks, _linear_scm),
}
"""By the name that `model.prior` has. A new one is a file in models/ and a line here (docs/components.md)."""


GraphLike = NodeGraph | Callable[..., NodeGraph]
PriorLike = PriorChoice | LatentPrior | Mixture | Callable[..., Any]


@dataclass(frozen=True)
class Components:
    """Objects in place of configured components. Modules are copied; what makes modules is called for every start.

    Attributes:
        graph: p(N): a `NodeGraph`; a subclass, made of the outcomes; or a function of the configuration.
        prior: A `PriorChoice`; a `LatentPrior` or a subclass, made of the dimension of Z; a mixture p(Z | N) or a
            subclass of `GaussianMixture`, made of number of cells, dimension and covariance; or a function of the
            configuration and the names of the modalities that makes a mixture.
        fusion: A `Fusion`; or a class or function of the number of modalities, the dimension of Z, and whether the
            prior is one more expert.
        encoders: Per modality, an `Encoder`; or a class or function as the table `ENCODERS` has them.
    """

    graph: GraphLike | None = None
    prior: PriorLike | None = None
    fusion: Fusion | MakeFusion | None = None
    encoders: Mapping[str, Encoder | MakeEncoder] = field(default_factory=dict)

    def by_setting(self) -> dict[str, Any]:
        """What is passed, by the setting that it takes the place of."""
        parts = {"model.graph": self.graph, "model.prior": self.prior, "guide.fusion": self.fusion}
        encoders = {f"modality.{name}.encoder": encoder for name, encoder in self.encoders.items()}
        return {name: part for name, part in {**parts, **encoders}.items() if part is not None}

    def class_names(self) -> dict[str, str]:
        """The name of the class or function of each, as a run keeps it to ask for the object again."""
        return {name: getattr(part, "__name__", type(part).__name__) for name, part in self.by_setting().items()}

    def check(self, config: FitConfig) -> None:
        """Refuse objects beside settings that ask for something else.

        Raises:
            ValueError: The setting is not at its default, a fusion beside a mask, or an encoder of no modality.
        """
        given = self.by_setting()
        model, guide = config.model, config.guide
        for name, value, default in (
            ("model.graph", model.graph, "hodge"),
            ("model.prior", model.prior, "dag"),
            ("guide.fusion", guide.fusion, "poe"),
            ("guide.graph", guide.graph, "point"),
        ):
            if value != default and (name in given or (name == "guide.graph" and "model.graph" in given)):
                raise ValueError(f"{name}: expected {default} beside an object, got {value}; leave one of the two out")
        if self.fusion is not None and config.mask:
            raise ValueError(
                "guide.fusion: expected no object with a mask, got one; modalities have blocks of Z of their own, so "
                "that nothing is fused: leave one of the two out"
            )
        odd = sorted(set(self.encoders) - set(config.modality))
        if odd:
            known = ", ".join(config.modality)
            raise ValueError(f"components.encoders: expected modalities ({known}), got {odd[0]!r}; rename it")
