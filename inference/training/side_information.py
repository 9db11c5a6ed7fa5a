"""From side information in a configuration to the labeller of a run."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from causalpima.guides.guide import Guide
from causalpima.inference.clusters.assumptions import (
    curve_moments,
    image_moments,
    label_by_independence,
    label_by_read_outs,
    plain_values,
)
from causalpima.inference.clusters.design import DesignedEffect, DesignedNode, designed_effect
from causalpima.inference.clusters.environments import Environments, soft_labelling, target_maps
from causalpima.inference.clusters.labels import (
    UNKNOWN,
    Certainty,
    Clusters,
    Labeller,
    Labelling,
    allowed_cells,
    assign_cells,
    certainty,
    check_number,
    is_beyond_chance,
    labelled_mass,
    left_out_agreement,
    unlabelled_combinations,
)
from causalpima.inference.clusters.names import outcome_names
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.roles import observational_rows
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.training.components import known_of_graph
from causalpima.inference.training.config import FitConfig
from causalpima.models.batch import Batch, Standardisation
from causalpima.models.user_code import import_module

__all__ = [
    "FEWEST_SAMPLES",
    "ObservedLabels",
    "ReadOuts",
    "covariate_effects",
    "declared_environments",
    "designed_nodes",
    "fit_covariate_shift",
    "make_labeller",
    "observed_labels",
    "read_outs_of",
    "with_trained_levels",
]


# Labels that tell the outcomes of nodes for some samples, and the labeller that reads clusters by them.


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
        _check_observed(node, variable, config, data)
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


def _check_observed(node: str, variable: str, config: FitConfig, data: MultimodalData) -> None:
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


# The environments of a data set, as a labeller takes them.


FEWEST_SAMPLES = 20
"""Training samples of an environment, below which nothing is searched in it."""


def declared_environments(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Environments | None:
    """The environments with interventions; None where the configuration declares none.

    Those that no training sample was taken in are left out.

    Args:
        config: The configuration.
        data: The samples.
        training: Positions of the training samples in the data set.

    Raises:
        ValueError: Samples without environments, environments with next to no samples, or a target of one that is not
            there or not intervened upon.
    """
    if config.environments.kind == "none":
        return None
    targets, names = config.environments.targets, data.environment_names
    codes = _training_codes(data, training)
    odd = next((name for name in targets if name not in names[1:]), None)
    if odd is not None:
        raise ValueError(
            f"environments.targets: expected environments with an intervention ({', '.join(names[1:]) or 'none'}), "
            f"got {odd!r}; write ENVIRONMENT=NODE"
        )
    present, codes = np.unique(codes, return_inverse=True)
    _check_sizes(data, present, np.bincount(codes))
    used = tuple(names[code] for code in present)
    return Environments(
        config.nodes,
        codes,
        used,
        {name: targets[name] for name in used if name in targets},
        tuple(config.visible.values()),
        known_of_graph(config),
    )


def _training_codes(data: MultimodalData, training: np.ndarray) -> np.ndarray:
    if data.environment is None:
        raise ValueError(
            f"environments.kind: expected samples of {data.name} with environments, got none; name the variable that "
            "tells them with --environment"
        )
    codes: np.ndarray = data.environment[training]
    return codes


def _check_sizes(data: MultimodalData, present: np.ndarray, sizes: np.ndarray) -> None:
    """Refuse environments that a search could say nothing of."""
    names = data.environment_names
    if present[0] != 0:
        raise ValueError(
            f"environments.kind: expected training samples of the environment {names[0]!r}, without intervention, got "
            f"none; name the level that stands for it ({', '.join(names[1:])}) with --observational"
        )
    if len(present) < 2:
        raise ValueError(
            f"environments.kind: expected training samples under interventions, got observational ones alone in "
            f"{data.name}; leave it out"
        )
    if sizes.min() < FEWEST_SAMPLES:
        raise ValueError(
            f"environment: expected {FEWEST_SAMPLES} training samples in each at least, got {sizes.min()} in "
            f"{names[present[sizes.argmin()]]!r}; leave its samples out"
        )


# Read-outs of modalities, by name or by a function of one's own.


_NAMED = ("moments", "values")


class ReadOuts(NamedTuple):
    """Quantities of the samples that have every modality they are read off.

    Attributes:
        values: `[m, F]`.
        present: Which of the n samples these are, bool `[n]`.
    """

    values: np.ndarray
    present: np.ndarray


def read_outs_of(wanted: Mapping[str, str], data: MultimodalData, rows: np.ndarray) -> ReadOuts:
    """Apply the read-outs of every modality to some samples.

    Args:
        wanted: Per modality `moments` (of images and curves), `values` (every element) or `module:function`, from
            `[m, ...]` in the unit of the data to `[m, F]`.
        data: The samples.
        rows: Positions of the n samples.

    Raises:
        ValueError: A modality that is not there or has gaps, a read-out that does not fit it, or a function that is not
            there, fails, or returns something else.
    """
    for name in wanted:
        _check_read_out(name, data)
    present = np.all([data.present[name][rows] for name in wanted], axis=0)
    if not present.any():
        raise ValueError(f"read_outs: expected samples that have {', '.join(wanted)}, got none; name fewer modalities")
    parts = [_read(name, how, data, rows[present]) for name, how in wanted.items()]
    return ReadOuts(np.concatenate(parts, axis=1), present)


def _check_read_out(name: str, data: MultimodalData) -> None:
    if name not in data.modalities:
        raise ValueError(
            f"read_outs: expected modalities of {data.name} ({', '.join(data.modalities)}), got {name!r}; write "
            "MODALITY=moments"
        )
    if name in data.observed:
        raise ValueError(
            f"read_outs: expected a modality without missing elements, got {name!r} with gaps; fill the gaps, or read "
            "off another modality"
        )


def _read(name: str, how: str, data: MultimodalData, rows: np.ndarray) -> np.ndarray:
    values = np.asarray(data.modalities[name][rows])
    found = _function(name, how, data)(values)
    quantities = np.asarray(found)
    if quantities.ndim != 2 or len(quantities) != len(rows) or quantities.dtype.kind not in "biuf":
        got = f"{quantities.dtype} {quantities.shape}"
        raise ValueError(f"read_outs.{name}: expected numbers [{len(rows)}, quantity] of {how}, got {got}")
    if not np.isfinite(quantities).all():
        raise ValueError(f"read_outs.{name}: expected finite numbers of {how}, got NaN or infinity")
    return quantities.astype(np.float64)


def _function(name: str, how: str, data: MultimodalData) -> Callable[[np.ndarray], np.ndarray]:
    kind = data.kinds[name]
    if how == "values":
        return plain_values
    if how == "moments" and kind == "image":
        return image_moments
    if how == "moments" and kind == "curve":
        return lambda curves: curve_moments(curves, data.axis(name).values)
    if how == "moments":
        raise ValueError(f"read_outs.{name}: expected values or module:function for a vector, got moments")
    return _own(name, how)


def _own(name: str, how: str) -> Callable[[np.ndarray], np.ndarray]:
    """A function of the user, called so that its errors are told in one line."""
    module_name, colon, function_name = how.partition(":")
    if not (module_name and colon and function_name):
        raise ValueError(f"read_outs.{name}: expected {', '.join(_NAMED)} or module:function, got {how!r}")
    function = getattr(import_module(f"read_outs.{name}", module_name), function_name, None)
    if not callable(function):
        raise ValueError(f"read_outs.{name}: expected a function {function_name} in {module_name}, got none")

    def call(values: np.ndarray) -> np.ndarray:
        try:
            found: np.ndarray = function(values)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, too: a user's function must not end the command in silence
            raise ValueError(f"read_outs.{name}: {how} fails: {type(error).__name__}: {_one_line(error)}") from error
        return found

    return call


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def make_labeller(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Labeller | None:
    """What names the clusters of a run; None where nothing does.

    Args:
        config: The configuration with its side information.
        data: The samples.
        training: Positions of the training samples in the data set, in the order in which a labeller sees them.

    Raises:
        ValueError: Side information that does not fit the data, or nodes with too many labellings to search.
    """
    strong = _by_labels(config, data, training)
    environments = declared_environments(config, data, training)
    if environments is not None and config.environments.kind == "soft":
        return _by_soft_environments(environments, known_of_graph(config), strong)
    if environments is not None:
        return _by_environments(environments, strong)
    return strong or _by_read_outs(config, data, training) or _by_independence(config)


def _by_labels(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Labeller | None:
    labels = observed_labels(config, data, training)
    return None if labels is None else lambda clusters: labels.labelling(clusters, training)


def _by_environments(environments: Environments, strong: Labeller | None) -> Labeller:
    """What the stronger side information leaves open is told by the environments."""
    if strong is None:
        environments.check()

    def labeller(clusters: Clusters) -> Labelling:
        return environments.labelling(clusters, None if strong is None else strong(clusters))

    return labeller


def _by_soft_environments(environments: Environments, knowledge: GraphKnowledge, strong: Labeller | None) -> Labeller:
    """Names come from elsewhere; the environments tell the graph under them."""
    target_maps(environments.known, len(environments.nodes))

    def labeller(clusters: Clusters) -> Labelling:
        return soft_labelling(environments, knowledge, clusters, None if strong is None else strong(clusters))

    return labeller


def _by_read_outs(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Labeller | None:
    if not config.read_outs:
        return None
    check_number(config.outcomes)
    values, present = read_outs_of(config.read_outs, data, training)
    names = [f"{name}={how}" for name, how in config.read_outs.items()]
    if (values == values[:1]).all():  # told now, not after the hours of pretraining
        raise ValueError(
            f"read_outs: expected quantities that differ between samples, got the same in all {len(values)} of "
            f"{', '.join(names)}; read off something else"
        )
    return lambda clusters: label_by_read_outs(clusters, config.nodes, values, present, names)


def _by_independence(config: FitConfig) -> Labeller | None:
    if not config.independent_nodes:
        return None
    check_number(config.outcomes)
    return lambda clusters: label_by_independence(clusters, config.nodes)


# The designed nodes of a configuration, with what their outcomes do to every modality.


def designed_nodes(
    config: FitConfig,
    labels: ObservedLabels | None,
    data: MultimodalData,
    split: np.ndarray,
    standardisation: Mapping[str, Standardisation],
) -> dict[int, DesignedNode]:
    """Every designed node by its position, from the training samples without interventions.

    Args:
        config: The configuration.
        labels: What labels tell of nodes; None: nothing.
        data: The samples.
        split: `train`, `validation` or `test` per sample.
        standardisation: Per modality, the way to the scale of the model.
    """
    rows = np.flatnonzero(observational_rows(split == "train", data.environment))
    return {
        list(config.nodes).index(node): _designed(node, config, data, rows, labels, standardisation)
        for node in config.knowledge.designed
    }


def _designed(
    node: str,
    config: FitConfig,
    data: MultimodalData,
    rows: np.ndarray,
    labels: ObservedLabels | None,
    standardisation: Mapping[str, Standardisation],
) -> DesignedNode:
    position = list(config.nodes).index(node)
    names = outcome_names(config.nodes, {} if labels is None else labels.levels)[position]
    if labels is None or node not in labels.variables:
        return DesignedNode(None, names, 0, len(rows))
    codes = labels.codes[rows, position]
    known = codes != UNKNOWN
    groups = None if data.groups is None else len(np.unique(data.groups[rows[known]]))
    found = {
        name: _effect(name, config, data, rows[known], codes[known], len(names), standardisation[name])
        for name in data.modalities
    }
    effects = {name: effect for name, effect in found.items() if effect is not None}
    return DesignedNode(labels.variables[node], names, int(known.sum()), len(rows), groups, effects)


def _effect(
    name: str,
    config: FitConfig,
    data: MultimodalData,
    rows: np.ndarray,
    codes: np.ndarray,
    n_outcomes: int,
    standardisation: Standardisation,
) -> DesignedEffect | None:
    is_categorical = config.modality[name].decoder.likelihood == "categorical"
    return designed_effect(data, name, rows, codes, n_outcomes, standardisation, config.seed, is_categorical)


# Linear effects of covariates on every element of a modality, fitted to the training samples.


_PASS_SIZE = 2048
_PSEUDO_SAMPLES = 1.0


@torch.no_grad()
def fit_covariate_shift(guide: Guide, data: TensorData) -> None:
    """Let encoders see every modality without what the covariates explain (`CovariateShift`).

    Args:
        guide: Its covariate shift is set.
        data: The training samples.
    """
    if data.covariates is None:
        return
    for name, _ in guide.covariate_shift.named_buffers():
        guide.covariate_shift.set_effects(name, covariate_effects(data, name))


def with_trained_levels(data: TensorData, training: np.ndarray) -> TensorData:
    """Held-out samples with a level that no training sample has get the average over the training samples instead.

    Args:
        data: All samples.
        training: Bool `[sample]`.
    """
    if data.covariates is None:
        return data
    mean = data.covariates[torch.from_numpy(np.flatnonzero(training)).to(data.device)].mean(0)
    unknown = (data.covariates * (mean == 0)).any(1, keepdim=True)
    return dataclasses.replace(data, covariates=torch.where(unknown, mean, data.covariates))


def covariate_effects(data: TensorData, name: str) -> Tensor:
    r"""Ridge regression of every element on the indicators of levels, `[V, D]`, one pass over the samples.

    `min_B Σ_n o_nd (x_nd - a_d - c_n · b_d)² + ‖b_d‖²` with an intercept a that is not part of the result, o = 1 where
    the element was measured; one pseudo-sample of weight keeps levels with few samples near zero.

    Args:
        data: Samples with covariates.
        name: The modality.
    """
    assert data.covariates is not None, "the caller has looked"
    gram = moment = torch.zeros((), dtype=torch.float64, device=data.device)
    for batch in data.batches(_PASS_SIZE):
        design = _design(batch)
        measured = batch.measured(name).double().flatten(1)
        if name not in batch.observed:
            measured = measured[:, :1]  # one regression design for all elements
        gram = gram + torch.einsum("nd,nu,nv->duv", measured, design, design)
        moment = moment + torch.einsum("nd,nu->du", measured * batch.values[name].double().flatten(1), design)
    ridge = torch.full((gram.shape[-1],), _PSEUDO_SAMPLES, dtype=torch.float64, device=data.device)
    ridge[0] = 1e-9  # the intercept is free; elements that nobody measured stay solvable
    effects = torch.linalg.solve(gram + torch.diag(ridge), moment.unsqueeze(-1)).squeeze(-1)
    return effects[:, 1:].T


def _design(batch: Batch) -> Tensor:
    """[1, c], `[batch, 1 + V]`."""
    assert batch.covariates is not None, "the caller has looked"
    return torch.nn.functional.pad(batch.covariates.double(), (1, 0), value=1.0)
