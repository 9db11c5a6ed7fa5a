"""Side information that names clusters: what of it goes together, and what can be counted of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from inference.graphs.dags import MOST_NODES
from inference.graphs.knowledge import graph_knowledge
from inference.identifiability import Environment, SideInformation
from inference.identifiability.labellings import count_labellings

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["check_side_information", "side_information"]


def check_side_information(config: FitConfig) -> None:
    """Refuse side information that contradicts itself or would go unused.

    Raises:
        ValueError: Soft interventions upon nodes without names, targets that are no nodes or of no environments,
            read-outs or independence beside something stronger or beside each other, or knowledge of the graph that is
            none.
    """
    _check_environments(config)
    _check_knowledge(config)
    given = _given(config)
    if given[:3] == ["mask", "observe", "environments"]:
        raise ValueError(
            "environments.kind: expected labels or a mask beside environments, got both; leave one of the three out"
        )
    weak = [name for name in given if name in ("read_outs", "independent_nodes")]
    if weak and len(given) > 1:
        raise ValueError(
            f"{weak[-1]}: expected no other side information that names clusters, got {given[0]} too, which assumes "
            f"less; leave {weak[-1]} out"
        )


def side_information(
    config: FitConfig, environments: Sequence[str] = (), named: Collection[str] = ()
) -> SideInformation:
    """What a configuration knows of its nodes, for the report on what remains undetermined.

    An intervention that sets its node at random, whatever its causes, marks no cells by itself: it counts as one under
    which all cells may occur, which directs edges and leaves the number of labellings an upper bound.

    Args:
        config: The configuration.
        environments: Names of the environments of the data with an intervention.
        named: Nodes that names were given to.
    """
    targets = config.environments.targets
    return SideInformation(
        config.nodes,
        config.mask,
        tuple(name for name in config.nodes if name in {*config.observe.variables, *named}),
        config.knowledge.tiers,
        environments=tuple(Environment("soft", targets.get(name)) for name in environments)
        if config.environments.kind != "none"
        else (),
        independent=config.independent_nodes,
    )


def _given(config: FitConfig) -> list[str]:
    """The strongest first."""
    there = {
        "mask": bool(config.mask),
        "observe": bool(config.observe.variables),
        "environments": config.environments.kind == "do",
        "read_outs": bool(config.read_outs),
        "independent_nodes": config.independent_nodes,
    }
    return [name for name, is_there in there.items() if is_there]


def _check_knowledge(config: FitConfig) -> None:
    graph_knowledge(config.knowledge, tuple(config.nodes))
    if config.independent_nodes and config.knowledge.require:
        raise ValueError(
            f"knowledge.require: expected no edges between nodes that are declared independent, got "
            f"{', '.join(config.knowledge.require)}; leave independent_nodes or them out"
        )


def _check_environments(config: FitConfig) -> None:
    kind, targets = config.environments.kind, config.environments.targets
    if kind == "soft":
        _check_soft(config)
    if kind == "none" and targets:
        raise ValueError(
            "environments.targets: expected none unless environments name the clusters, got "
            f"{', '.join(targets)}; add --environments.kind do if the interventions set their node whatever its causes"
        )
    odd = next((node for node in targets.values() if node not in config.nodes), None)
    if odd is not None:
        raise ValueError(
            f"environments.targets: expected nodes of --nodes ({', '.join(config.nodes)}), got {odd!r}; write "
            "ENVIRONMENT=NODE"
        )


def _check_soft(config: FitConfig) -> None:
    """Soft interventions name nothing; over nodes that something else names, they direct edges."""
    labelled = [position for position, name in enumerate(config.nodes) if name in config.observe.variables]
    if count_labellings(config.outcomes, list(config.visible.values()) or None, labelled=labelled) != 1:
        raise ValueError(
            "environments.kind: expected do, or soft beside a mask or labels that name every node, got soft; where a "
            "node goes on to depend on its causes, renaming its outcomes for each of their outcomes changes no "
            "likelihood, so that soft interventions name nothing: name the nodes by --observe or --mask, or leave this "
            "out, and the environments take part as further samples"
        )
    if len(config.nodes) > MOST_NODES:
        raise ValueError(
            f"environments.kind: expected at most {MOST_NODES} nodes with soft interventions, got {len(config.nodes)}; "
            "leave this out, and the environments take part as further samples"
        )
