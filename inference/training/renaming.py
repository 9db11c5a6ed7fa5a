"""A finished fit whose cells get other numbers and names, with p(N) to go with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from inference.data.tensors import TensorData
from inference.graphs.edge_text import edge_text, read_edge
from inference.labelling.labelling import Labelling
from inference.training.chosen_components import chosen_graph, chosen_prior
from inference.training.clustering import cell_counts, cell_responsibilities, fit_graph
from inference.training.config import FitConfig, KnowledgeConfig
from inference.training.environment_tables import take_over_environments
from inference.training.graph_choice import known_of_graph
from inference.training.relaxed_graphs import settle_relaxed
from inference.training.schedules import geometric, linear
from inference.training.state import TrainingState
from inference.training.table_updates import settle_tables, update_tables
from models.graph import RelaxedGraph, TableGraph
from models.latent_priors import LinearSCM

__all__ = ["harden_graph", "refit_graph", "relabel_cells", "settle_graph", "take_over_graph", "with_node_names"]


def relabel_cells(
    state: TrainingState,
    data: TensorData,
    config: FitConfig,
    labelling: Labelling,
    weights: np.ndarray | None = None,
    nodes: Sequence[str] | None = None,
) -> None:
    """Let cell c become cell `permutation[c]`, with p(N) of the cells as they are numbered then.

    p(N) is fitted to their mass; where environments told it, it is theirs, with their graph as far as the names leave
    it a meaning: the mass of all samples is not p(N) then.

    Args:
        state: The model is changed, and made good for no more training.
        data: The training samples.
        config: The configuration.
        labelling: The permutation, and what environments told.
        weights: How much each of these counts, where they come in groups, `[n]` (`group_weights`); None: 1.
        nodes: What the labelling calls the nodes; None: as the configuration does.

    Raises:
        ValueError: The nodes have blocks of Z of their own, or decoders and mask do not allow the permutation.
    """
    if isinstance(state.model.latent_prior, LinearSCM):
        raise ValueError(
            "expected a prior whose cells can be renamed, got linear_scm, whose blocks of Z are nodes by the labels "
            "that it was trained with; train with other labels"
        )
    count = cell_counts(state, data, config)
    permutation = torch.from_numpy(labelling.permutation).to(count.device)
    state.model.relabel(permutation)
    state.labelling = labelling.to_plain()
    if labelling.joint is None:
        refit_graph(state, count[torch.argsort(permutation)], config)
        settle_graph(state, data, config, weights)
    elif not take_over_graph(state, data, config, nodes):
        refit_graph(state, torch.tensor(labelling.joint).to(count).reshape(-1) * count.sum(), config)


def take_over_graph(
    state: TrainingState, data: TensorData, config: FitConfig, nodes: Sequence[str] | None = None
) -> bool:
    """Give the model graph, p(N) and p(N | e) as environments tell them; False where they tell none.

    Samples of several environments have no one p(N) to be fitted to. A graph that the configuration gives stays, with
    tables of their p(N). Where the graph that they tell contradicts what is known, p(N) is fitted to theirs under what
    is known.

    Args:
        state: The model is changed.
        data: The training samples.
        config: The configuration.
        nodes: What the labelling calls the nodes; None: as the configuration does.
    """
    labelling = state.labelling or {}
    if "joint" not in labelling or "graph" not in labelling["details"]:
        return False
    graph = state.model.graph
    like = graph.log_joint()
    joint = torch.tensor(labelling["joint"]).to(like)
    if isinstance(graph, TableGraph) and config.model.graph != "exact":
        graph.take_over_joint(joint)
    elif bool(known_of_graph(config).allows(np.array(labelling["details"]["graph"]))):
        graph.take_over(torch.tensor(labelling["details"]["graph"], device=like.device), joint)
    else:
        refit_graph(state, joint.reshape(-1) * sum(labelling["details"]["samples"].values()), config)
    take_over_environments(state.model, labelling, data.environment_names, tuple(nodes or config.nodes))
    return True


def settle_graph(state: TrainingState, data: TensorData, config: FitConfig, weights: np.ndarray | None = None) -> None:
    """The graph that a fit ends with, where it is searched: by the likelihood of the mixture (`settle_tables`)."""
    if isinstance(state.model.graph, TableGraph):
        settle_tables(state.model.graph, cell_responsibilities(state, data, config), config, weights)


def harden_graph(state: TrainingState, data: TensorData, config: FitConfig) -> None:
    """Run the schedule of a graph that a penalty keeps from cycles to its end, and make it hard; else nothing."""
    graph = state.model.graph
    if isinstance(graph, RelaxedGraph) and not graph.is_settled:
        settle_relaxed(graph, cell_counts(state, data, config), config)


def refit_graph(state: TrainingState, cell_count: Tensor, config: FitConfig) -> None:
    """Fit p(N) to the given mass of every cell from new parameters, over the schedules of joint training.

    A hard graph has its closed form, whatever it was before, and one that a penalty keeps from cycles its own schedule
    (`settle_relaxed`). An order of the nodes that was learned for other cells
    would stand in the way: reversing an edge passes through a barrier of the likelihood. Temperature and noise run
    through their schedules with as many steps per epoch as the training takes; the last steps are at the final
    temperature, without noise, as after the final read-out.

    Args:
        state: Graph and optimiser are replaced.
        cell_count: n_c, `[C]`.
        config: The configuration.
    """
    graph, settings, n_epochs = state.model.graph, config.graph, max(config.training.epochs, 1)
    fresh = chosen_graph(config, chosen_prior(config, state.components), state.components).to(cell_count.device)
    graph.load_state_dict(fresh.state_dict())
    if isinstance(graph, TableGraph):
        update_tables(graph, cell_count, config)
        return
    if isinstance(graph, RelaxedGraph):
        settle_relaxed(graph, cell_count, config)
        return
    if state.guide.graph_guide is not None:
        state.guide.graph_guide.restart()
        graph.set_temperature(settings.temperature_end)
        fit_graph(state, cell_count, config, settings.start_steps)
        return
    state.optimizer = torch.optim.Adam(graph.parameters(), lr=settings.learning_rate, fused=True)
    steps = settings.extra_steps + max(1, round(float(cell_count.sum()) / config.training.batch_size))
    graph.train()
    for epoch in range(n_epochs):
        start, end = settings.temperature_start, settings.temperature_end
        graph.set_temperature(geometric(start, end, epoch, n_epochs))
        graph.draw_noise(linear(settings.noise_start, settings.noise_end, epoch, n_epochs))
        fit_graph(state, cell_count, config, steps + (settings.start_steps if epoch == 0 else 0))
    graph.eval()
    graph.set_temperature(settings.temperature_end)
    fit_graph(state, cell_count, config, settings.start_steps)


def with_node_names(config: FitConfig, names: tuple[str, ...]) -> FitConfig:
    """The same configuration with other names of the nodes, in their order."""
    nodes = dict(zip(names, config.nodes.values(), strict=True))
    renamed = dict(zip(config.nodes, names, strict=True))
    targets = {name: renamed.get(node, node) for name, node in config.environments.targets.items()}
    variables = {renamed.get(node, node): variable for node, variable in config.observe.variables.items()}
    mask = {name: tuple(renamed[node] for node in seen) for name, seen in config.mask.items()}
    knowledge, edges = _knowledge_with_names(config.knowledge, renamed), _edges_with_names(config.model.edges, renamed)
    return dataclasses.replace(
        config,
        nodes=nodes,
        mask=mask,
        model=dataclasses.replace(config.model, edges=edges),
        knowledge=knowledge,
        observe=dataclasses.replace(config.observe, variables=variables),
        environments=dataclasses.replace(config.environments, targets=targets),
    )


def _knowledge_with_names(knowledge: KnowledgeConfig, renamed: Mapping[str, str]) -> KnowledgeConfig:
    tiers = tuple(tuple(renamed[node] for node in tier) for tier in knowledge.tiers)
    designed = tuple(renamed[node] for node in knowledge.designed)
    forbid, require = (_edges_with_names(texts, renamed) for texts in (knowledge.forbid, knowledge.require))
    return KnowledgeConfig(forbid, require, tiers, designed)


def _edges_with_names(texts: tuple[str, ...], renamed: Mapping[str, str]) -> tuple[str, ...]:
    pairs = (read_edge("edges", text, tuple(renamed)) for text in texts)
    return tuple(edge_text(renamed[cause], renamed[effect]) for cause, effect in pairs)
