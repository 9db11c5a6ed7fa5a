"""What is known of nodes besides the measurements: labels, environments, and the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["EnvironmentsConfig", "KnowledgeConfig", "ObserveConfig"]


@dataclass(frozen=True)
class ObserveConfig:
    """Labels that tell the outcomes of nodes for some samples (docs/names_and_labels.md).

    Attributes:
        variables: Node -> the variable of the data that holds its outcomes; in short `--observe NODE=VARIABLE,...`, or
            `--observe NODE` for a variable of the same name.
        fraction: Share of the labelled samples whose labels are used, drawn at random: for experiments.
        use: `names`: labels number and name the clusters that are read out. `training`: they also tell N of their
            samples in the model during joint training.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    fraction: float = 1.0
    use: Literal["names", "training"] = "names"

    def __post_init__(self) -> None:
        if isinstance(self.variables, Mapping):  # anything else is refused by `check_settings`, by name
            object.__setattr__(self, "variables", dict(self.variables))


@dataclass(frozen=True)
class EnvironmentsConfig:
    """Environments, samples of which were taken under an intervention upon one node each (docs/environments.md).

    Attributes:
        kind: `do`: interventions cut their node from its causes, and name the clusters; `none`: environments are
            further samples. `soft`: a node goes on to depend on its causes; these name nothing, and direct edges
            between nodes that a mask or labels name.
        targets: Environment -> the node that is intervened upon; those without an entry are searched.
    """

    kind: Literal["none", "do", "soft"] = "none"
    targets: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.targets, Mapping):  # anything else is refused by `check_settings`, by name
            object.__setattr__(self, "targets", dict(self.targets))


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
