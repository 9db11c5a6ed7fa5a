"""Labels that tell the outcomes of nodes for some samples, and the labeller that reads clusters by them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inference.data.multimodal import MultimodalData
from inference.labelling.label_certainty import (
    Certainty,
    certainty,
    is_beyond_chance,
    left_out_agreement,
    unlabelled_combinations,
)
from inference.labelling.labelling import Clusters, Labelling
from inference.labelling.labels import UNKNOWN, allowed_cells, assign_cells, labelled_mass
from inference.labelling.outcome_names import outcome_names
from inference.training.config import FitConfig

__all__ = ["ObservedLabels", "observed_labels"]

_STREAM = 4


@dataclass(frozen=True)
class ObservedLabels:
    """What labels tell of nodes; n samples, L nodes.

    Attributes:
        outcomes: Outcomes per node by name.
        variables: Per observed node, the variable that holds its outcomes.
        levels: Per observed node, the names of its first outcomes.
        codes: Outcome of each node in every sample of the data set, `[n, L]`; `UNKNOWN` where no label is used.
    """

    outcomes: Mapping[str, int]
    variables: Mapping[str, str]
    levels: Mapping[str, tuple[str, ...]]
    codes: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        """Samples some label of which is used, bool `[n]`."""
        used: np.ndarray = (self.codes != UNKNOWN).any(axis=1)
        return used

    def cells(self, samples: np.ndarray, device: torch.device) -> Tensor:
        """Cells that the labels leave possible, bool `[m, C]`, of the samples of a mask `[n]`."""
        allowed = allowed_cells(self.codes[samples], tuple(self.outcomes.values()))
        return torch.from_numpy(allowed).to(device)

    def labelling(self, clusters: Clusters, rows: np.ndarray) -> Labelling:
        """Clusters as the cells that agree best with the labels, and how far these settle it.

        Args:
            clusters: The clusters of the training samples.
            rows: Positions of the training samples in the data set.
        """
        outcomes, codes = tuple(self.outcomes.values()), self.codes[rows]
        mass = labelled_mass(clusters.responsibilities, codes, outcomes)
        permutation = assign_cells(mass)
        left_open = certainty(mass, permutation, outcomes, self._is_observed)
        agreement = self._by_node(left_out_agreement(clusters.responsibilities, codes, outcomes))
        positions = {node: list(self.outcomes).index(node) for node in self.variables}
        by_chance = [n for n, share in agreement.items() if not is_beyond_chance(share, codes[:, positions[n]])]
        settled = [node for node, position in positions.items() if not left_open.unsettled_nodes[position]]
        named = tuple(node for node in settled if node not in by_chance)
        details = {
            **self._details(),
            **self._left_open(left_open),
            "left_out_agreement": agreement,
            "no_better_than_chance": by_chance,
        }
        return Labelling(permutation, "labels", named, details, agreement=mass)

    @property
    def _is_observed(self) -> np.ndarray:
        """Which nodes have a variable, bool `[L]`."""
        return np.array([node in self.variables for node in self.outcomes])

    def _by_node(self, shares: Sequence[float | None]) -> dict[str, float]:
        pairs = zip(self.outcomes, shares, strict=True)
        return {node: share for node, share in pairs if node in self.variables and share is not None}

    def _details(self) -> dict[str, Any]:
        observed = self._is_observed
        counts = tuple(np.array(list(self.outcomes.values()))[observed].tolist())
        missing = unlabelled_combinations(self.codes[:, observed], counts)
        return {
            "variables": dict(self.variables),
            "n_labelled": int(self.labelled.sum()),
            "n_labelled_by_node": {
                node: int((self.codes[:, position] != UNKNOWN).sum())
                for position, node in enumerate(self.outcomes)
                if node in self.variables
            },
            "levels_without_label": self.levels_without_label(),
            "n_groups": math.prod(counts),
            "groups_without_label": [self._named(combination) for combination in missing],
        }

    def _left_open(self, left_open: Certainty) -> dict[str, Any]:
        cells = np.stack(np.unravel_index(left_open.unsettled_cells, tuple(self.outcomes.values())), axis=1)
        groups = dict.fromkeys(self._named(cell) for cell in cells[:, self._is_observed].tolist())
        return {"gap": left_open.gap, "unsettled_groups": list(groups)}

    def _named(self, combination: Sequence[int]) -> str:
        """A joint outcome of the observed nodes by the names of its levels, `red,small`."""
        observed = {node: count for node, count in self.outcomes.items() if node in self.variables}
        names = outcome_names(observed, self.levels)
        return ",".join(words[code] for words, code in zip(names, combination, strict=True))

    def levels_without_label(self) -> dict[str, list[str]]:
        """Per node that has any, the levels that no used label has: what stands for them is a guess."""
        nodes = list(self.outcomes)
        unseen = {
            name: [level for code, level in enumerate(levels) if not (self.codes[:, nodes.index(name)] == code).any()]
            for name, levels in self.levels.items()
        }
        return {name: levels for name, levels in unseen.items() if levels}


def observed_labels(config: FitConfig, data: MultimodalData, training: np.ndarray) -> ObservedLabels | None:
    """The labels that a configuration has of its nodes; None where it asks for none.

    Labels of training samples alone are used: those of held-out samples stay for scores. With a `fraction`, these are
    drawn at random by the seed of the configuration, alike for every restart.

    Args:
        config: The configuration.
        data: The samples.
        training: Positions of the training samples in the data set.

    Raises:
        ValueError: A node or variable that is not there, more levels than outcomes, or no labelled sample.
    """
    if not config.observe.variables:
        _refuse_alone(config)
        return None
    codes = np.full((data.n_samples, len(config.nodes)), UNKNOWN, dtype=np.int64)
    for node, variable in config.observe.variables.items():
        _check(node, variable, config, data)
        codes[training, list(config.nodes).index(node)] = data.factors[variable][training]
    codes[_dropped(codes, config, data)] = UNKNOWN
    if (codes == UNKNOWN).all():
        named = _listed(config.observe.variables.values())
        raise ValueError(f"observe: expected a label of some training sample, got none in {named}; label some samples")
    levels = {node: tuple(data.factor_levels[variable]) for node, variable in config.observe.variables.items()}
    return ObservedLabels(config.nodes, config.observe.variables, levels, codes)


def _refuse_alone(config: FitConfig) -> None:
    for name, default in (("fraction", 1.0), ("use", "names")):
        if getattr(config.observe, name) != default:
            raise ValueError(f"observe.{name}: expected it with labels, got none; name them by --observe NODE=VARIABLE")


def _dropped(codes: np.ndarray, config: FitConfig, data: MultimodalData) -> np.ndarray:
    """Labelled training samples that are left out, so that a share of all labelled samples remains."""
    there = np.flatnonzero((codes != UNKNOWN).any(axis=1))
    columns = [data.factors[variable] != UNKNOWN for variable in config.observe.variables.values()]
    wanted = math.ceil(config.observe.fraction * int(np.any(columns, axis=0).sum()))
    generator = np.random.default_rng((config.seed, _STREAM))
    dropped: np.ndarray = generator.permutation(there)[wanted:]
    return dropped


def _check(node: str, variable: str, config: FitConfig, data: MultimodalData) -> None:
    if node not in config.nodes:
        raise ValueError(
            f"observe: expected nodes of --nodes ({_listed(config.nodes)}), got {node!r}; write NODE=VARIABLE"
        )
    if variable not in data.factors:
        raise ValueError(
            f"observe: expected a label of {data.name} for node {node!r}, got {variable!r}; "
            f"there is {_listed(_alike(variable, data.factors)) or 'none'}"
        )
    levels, count = data.factor_levels[variable], config.nodes[node]
    if len(levels) > count:
        raise ValueError(
            f"observe: expected at most {count} levels in {variable!r}, as node {node!r} has outcomes, got "
            f"{len(levels)} ({_listed(levels)}); give the node {len(levels)} outcomes"
        )


def _alike(word: str, there: Collection[str]) -> Collection[str]:
    return difflib.get_close_matches(word, there, cutoff=0.6) or there


def _listed(words: Collection[str], most: int = 8) -> str:
    return ", ".join(list(words)[:most]) + (", ..." if len(words) > most else "")
