"""The fit as one netCDF file in the ArviZ schema; knows no torch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from causalpima.inference.findings.arrays import CurveArrays, FitArrays, ModalityArrays, PhysicsArrays
from causalpima.inference.findings.designed import designed_group
from causalpima.inference.findings.names import (
    SAMPLE_ID,
    TOTAL,
    Coordinate,
    axis_names,
    cell_names,
    modality_attributes,
    outcome_dimensions,
    position_coords,
    variable_names,
)
from causalpima.inference.findings.pareto import FEWEST_DRAWS, K_LIMIT, psis_khat
from causalpima.inference.store.files import (
    file_attributes,
    library_versions,
    to_json,
    write_atomically,
    write_bytes,
)
from causalpima.inference.store.hdf5 import survives_full_disk

__all__ = [
    "EDGE_CONVENTION",
    "GROUPS",
    "chain_coords",
    "chosen_latent_group",
    "history_group",
    "modality_variables",
    "restarts_group",
    "run_facts",
    "to_datatree",
    "write_posterior",
]


# What the exported file says of each modality: positions, units, scale, decoded curves, physical parameters.


_AxisNames = tuple[str, ...]
_Arrays = dict[str, tuple[_AxisNames, np.ndarray, dict[str, str]]]


def modality_variables(fit: FitArrays) -> tuple[_Arrays, dict[str, Coordinate]]:
    """Decoded means, exemplars, noise, curves and physical parameters of all modalities, and their coordinates."""
    variables: _Arrays = {}
    coords: dict[str, Coordinate] = {}
    for name, variable in variable_names(fit.modalities).items():
        modality = fit.modalities[name]
        dims, attributes = axis_names(variable, modality), modality_attributes(modality)
        variables[f"decoded_{variable}"] = (("cell", *dims), modality.decoded, attributes)
        variables[f"exemplar_{variable}"] = (("cell", *dims), modality.exemplars, attributes)
        coords |= position_coords(variable, modality)
        if modality.noise_sd is not None:
            variables[f"noise_sd_{variable}"] = (dims, modality.noise_sd, _noise_attributes(modality))
        if modality.curves is not None:
            variables |= _curves(variable, modality.curves, dims, attributes)
        if modality.physics is not None:
            variables |= _physics(variable, modality.physics, dims, attributes)
            coords |= _physics_coords(variable, modality.physics)
    return variables, coords


def _noise_attributes(modality: ModalityArrays) -> dict[str, str]:
    """The unit of the values where the noise is stated in it; on the logarithmic and asinh scales it has none."""
    attributes = modality_attributes(modality)
    if modality.transform == "identity":
        return attributes
    return {key: value for key, value in attributes.items() if key not in ("unit", "units")}


def _curves(variable: str, curves: CurveArrays, dims: _AxisNames, attributes: dict[str, str]) -> _Arrays:
    found: _Arrays = {f"examples_{variable}": (("cell", f"example_{variable}", *dims), curves.examples, attributes)}
    for side, values in (("lower", curves.lower), ("upper", curves.upper)):
        if values is not None:
            note = {"note": "two predictive standard deviations from decoded", **attributes}
            found[f"predictive_{side}_{variable}"] = (("cell", *dims), values, note)
    return found


def _physics(variable: str, physics: PhysicsArrays, dims: _AxisNames, attributes: dict[str, str]) -> _Arrays:
    per_parameter = ("cell", f"parameter_{variable}")
    numbers = ("value", "standard_error", "lower", "upper")
    curves = {"law": physics.curve, "lower_law": physics.curve_lower, "upper_law": physics.curve_upper}
    _, codes = np.unique(physics.status, return_inverse=True)
    return {
        **{f"physics_{key}_{variable}": (per_parameter, getattr(physics, key), {}) for key in numbers},
        # No coordinate: those of a name with a space cannot be written as such.
        f"physics_unit_{variable}": ((f"parameter_{variable}",), _coordinate_names(physics.units), {}),
        f"physics_status_{variable}": (per_parameter, codes.reshape(physics.status.shape), {}),
        f"physics_samples_{variable}": (("cell",), physics.effective_samples, {}),
        **{f"{key}_{variable}": (("cell", *dims), array, attributes) for key, array in curves.items()},
    }


def _physics_coords(variable: str, physics: PhysicsArrays) -> dict[str, Coordinate]:
    dim, levels = f"parameter_{variable}", f"physics_level_{variable}"
    return {
        dim: ((dim,), _coordinate_names(physics.names), {}),
        levels: ((levels,), _coordinate_names(np.unique(physics.status)), {}),
    }


def _coordinate_names(names: Iterable[str]) -> np.ndarray:
    return np.array([str(name) for name in names], dtype=object)


# Several starts: chains of what is comparable after alignment, and a group of their own.


def chain_coords(fit: FitArrays) -> dict[str, object]:
    """Numbers of the chains, and with several starts the start that each of them is."""
    if fit.restarts is None:
        return {"chain": np.arange(1)}
    return {"chain": np.arange(len(fit.restarts.chain)), "start_of_chain": (("chain",), fit.restarts.chain)}


def chosen_latent_group(fit: FitArrays) -> xr.Dataset:
    """Draws of Z of the kept start; empty of a single start, whose draws are in `posterior`.

    Every start has a latent space of its own, so that Z of different starts are no chains of one variable: R-hat would
    compare what can't be compared.
    """
    if fit.restarts is None:
        return xr.Dataset()
    draws = fit.draws
    coords = {
        "chain": np.arange(1),
        "draw": np.arange(len(draws.latent)),
        SAMPLE_ID: draws.samples,
        "latent": np.arange(draws.latent.shape[-1]),
    }
    return xr.Dataset({"Z": (("chain", "draw", SAMPLE_ID, "latent"), draws.latent[None])}, coords=coords)


def restarts_group(fit: FitArrays) -> xr.Dataset:
    """What the starts are judged by, and what of each is not sampled, with cells numbered alike; empty of one start."""
    restarts = fit.restarts
    if restarts is None:
        return xr.Dataset()
    outcomes = outcome_dimensions(fit.graph)
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "entropy": (("start",), restarts.entropy),
        "ari": (("start", "start_other"), restarts.ari),
        "node_agreement": (("chain", "node"), restarts.node_agreement),
        "responsibilities": (("chain", SAMPLE_ID, "cell"), restarts.responsibilities.astype(np.float32)),
        "log_joint": (("chain", *outcomes), restarts.log_joint),
    }
    if restarts.cpdag is not None:
        variables["cpdag"] = (("chain", "node_from", "node_to"), restarts.cpdag.astype(np.int32))
    return xr.Dataset(variables, coords=_coords(fit, restarts.status))


def _coords(fit: FitArrays, status: np.ndarray) -> dict[str, object]:
    nodes = np.array(fit.graph.node_names, dtype=object)
    names = zip(outcome_dimensions(fit.graph), fit.graph.outcome_names, strict=True)
    return {
        **chain_coords(fit),
        "start": np.arange(len(status)),
        "start_other": np.arange(len(status)),
        "status": (("start",), status.astype(object)),
        SAMPLE_ID: fit.draws.samples,
        "cell": np.array(cell_names(fit.graph), dtype=object),
        "node": nodes,
        "node_from": nodes,
        "node_to": nodes,
        **{dim: np.array(levels, dtype=object) for dim, levels in names},
    }


# The course of a fit as a dataset: one record per epoch.


def history_group(history: Sequence[Mapping[str, Any]]) -> xr.Dataset:
    """One variable per quantity, along the dimension `record`.

    Numbers stay numbers, None becomes NaN. Words become codes, their names the coordinate `KEY_level`. Numbers by
    name get a second dimension `KEY_name`.

    Args:
        history: One record per epoch.
    """
    keys = dict.fromkeys(key for record in history for key in record)
    columns = [_column(key, [record.get(key) for record in history]) for key in keys]
    return xr.merge(columns, join="exact")


def _column(key: str, values: list[Any]) -> xr.Dataset:
    if any(isinstance(value, Mapping) for value in values):
        return _named_numbers(key, [value or {} for value in values])
    if any(isinstance(value, str) for value in values):
        levels, codes = np.unique([value or "" for value in values], return_inverse=True)
        return xr.Dataset({key: ("record", codes)}, coords={f"{key}_level": levels.astype(object)})
    return xr.Dataset({key: ("record", _numbers(values))})


def _named_numbers(key: str, values: list[Mapping[str, Any]]) -> xr.Dataset:
    names = list(dict.fromkeys(name for value in values for name in value))
    table = np.array([_numbers([value.get(name) for name in names]) for value in values], dtype=float)
    dim = f"{key}_name"
    return xr.Dataset({key: (("record", dim), table)}, coords={dim: np.array(names, dtype=object)})


def _numbers(values: list[Any]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])


# The groups of the exported file, each a dataset in the ArviZ schema.


EDGE_CONVENTION = "adjacency[i, j] = 1 means i -> j; rows are causes, columns are effects"

_Dims = Sequence[str]
_Variable = tuple[_Dims, np.ndarray] | tuple[_Dims, np.ndarray, dict[str, str]]
_Variables = Mapping[str, _Variable]

_DRAWS = ("chain", "draw")

_NOTE = (
    "log p(x | z, N), nats in the units of the data, at draws of z from q(z | x): leave-one-out by importance sampling "
    f"(arviz.loo, arviz.compare) is conditional on z, and not to be used where many samples have a Pareto k above "
    f"{K_LIMIT} (their share by variable: pareto_k_above_{K_LIMIT}). Compare fits by the importance-weighted estimate "
    "of held-out log p(x): held_out_log_likelihood in summary.json, of every sample the log of the mean over draws of "
    "exp(log_weight) in sample_stats."
)


def _dataset(variables: _Variables, coords: Mapping[str, object]) -> xr.Dataset:
    return xr.Dataset(dict(variables), coords=dict(coords))


def _draw_coords(fit: FitArrays) -> dict[str, object]:
    return {"chain": np.arange(1), "draw": np.arange(len(fit.draws.latent))}


def _chain_coords(fit: FitArrays) -> dict[str, object]:
    return {**_draw_coords(fit), **chain_coords(fit)}


def _posterior(fit: FitArrays) -> xr.Dataset:
    """Draws of Z, of several starts in one latent space, each with the N that was drawn with it."""
    draws, restarts = fit.draws, fit.restarts
    nodes, latent = (draws.nodes[None], draws.latent[None]) if restarts is None else (restarts.nodes, restarts.latent)
    return _drawn(latent, nodes, {**_chain_coords(fit), SAMPLE_ID: draws.samples, **_latent(fit), **_nodes(fit)})


def _prior(fit: FitArrays) -> xr.Dataset:
    latent, nodes = fit.draws.prior_latent[None], fit.draws.prior_nodes[None]
    return _drawn(latent, nodes, {**_draw_coords(fit), **_latent(fit), **_nodes(fit)})


def _drawn(latent: np.ndarray | None, nodes: np.ndarray, coords: Mapping[str, object]) -> xr.Dataset:
    """Draws of Z with N as their label, a coordinate; N alone where starts of an earlier version kept no Z.

    N is a code without mean or variance, and of a sample that is certain the same in every draw: as a variable it makes
    ArviZ's `summary` divide by the variance of a constant. As a coordinate it is read by the same name and left out
    of summaries and plots.
    """
    dims = (*_DRAWS, *([SAMPLE_ID] if SAMPLE_ID in coords else []))
    cells = ((*dims, "node"), nodes.astype(np.int32))
    if latent is None:
        return _dataset({"N": cells}, {key: value for key, value in coords.items() if key != "latent"})
    return _dataset({"Z": ((*dims, "latent"), latent)}, {**coords, "N": cells})


def _sample_stats(fit: FitArrays) -> xr.Dataset:
    coords = {**_chain_coords(fit), SAMPLE_ID: fit.draws.samples}
    log_weight = fit.draws.log_weight[None] if fit.restarts is None else fit.restarts.log_weight
    return _dataset({"log_weight": ((*_DRAWS, SAMPLE_ID), log_weight.astype(np.float64))}, coords)


def _log_likelihood(fit: FitArrays) -> xr.Dataset:
    """One variable, so that `arviz.loo` and `arviz.compare` need no name: all that was measured of a sample.

    With several modalities it is their sum, and each of them is a coordinate, which ArviZ finds by its name
    (`var_name`). netCDF has no coordinates with a blank in their name: those stay variables.
    """

    def values(name: str) -> np.ndarray:
        found = fit.draws.log_likelihood[name][None] if fit.restarts is None else fit.restarts.log_likelihood[name]
        return found.astype(np.float64)

    coords = _chain_coords(fit)
    found = _per_modality(fit, fit.draws.samples, values, coords, present=True, has_unit=False)
    modalities = [str(name) for name in found.data_vars]
    if len(modalities) > 1:
        found = found.assign(_total_log_likelihood(fit, values, modalities))
        found = found.set_coords([name for name in modalities if len(name.split()) == 1])
    return found.assign_attrs(_reliability(found))


def _total_log_likelihood(
    fit: FitArrays, values: Callable[[str], np.ndarray], modalities: Sequence[str]
) -> Mapping[str, xr.DataArray]:
    """The sum over the modalities that a sample has, of samples that have one."""
    samples, name = fit.draws.samples, TOTAL
    while name in modalities:
        name += "_"
    present = {modality: fit.present[modality][samples] for modality in fit.modalities}
    total = np.sum([np.where(has, values(modality), 0.0) for modality, has in present.items()], axis=0)
    kept = np.logical_or.reduce(list(present.values()))
    dim = SAMPLE_ID if kept.all() else f"{SAMPLE_ID}_{name}"
    attributes = {"units": "nats", "sum_of": ", ".join(modalities)}
    array = xr.DataArray(total[..., kept], dims=(*_DRAWS, dim), coords={dim: samples[kept]}, attrs=attributes)
    return {name: array}


def _reliability(log_likelihood: xr.Dataset) -> dict[str, str]:
    """What to know before `arviz.loo`: attributes of the group."""
    drawn = {name: values for name, values in log_likelihood.variables.items() if values.dims[:2] == _DRAWS}
    weights = {name: -values.to_numpy().reshape(-1, values.shape[-1]) for name, values in drawn.items()}
    share = {str(name): (psis_khat(w) > K_LIMIT).mean() for name, w in weights.items() if len(w) >= FEWEST_DRAWS}
    return {"note": _NOTE, f"pareto_k_above_{K_LIMIT}": to_json(share, indent=None)}


def _posterior_predictive(fit: FitArrays) -> xr.Dataset:
    return _per_modality(fit, fit.draws.predictive_samples, _predictive(fit), _draw_coords(fit), present=True)


def _predictions(fit: FitArrays) -> xr.Dataset:
    return _per_modality(fit, fit.draws.predictive_samples, _predictive(fit), _draw_coords(fit), present=False)


def _observed_data(fit: FitArrays) -> xr.Dataset:
    return _per_modality(fit, fit.draws.predictive_samples, lambda name: fit.observed[name], {}, present=True)


def _predictive(fit: FitArrays) -> Callable[[str], np.ndarray]:
    return lambda name: fit.draws.predictive[name][None].astype(fit.observed[name].dtype, copy=False)


def _per_modality(
    fit: FitArrays,
    samples: np.ndarray,
    values: Callable[[str], np.ndarray],
    leading: Mapping[str, object],
    present: bool,
    has_unit: bool = True,
) -> xr.Dataset:
    """One variable per modality, of the samples that have it (`present`) or lack it.

    A modality that every sample has keeps the dimension `sample_id`; another one gets its own, so that no entry is NaN
    but single elements that are missing from a measurement.
    """
    variables: dict[str, _Variable] = {}
    coords, n_leading = dict(leading), len(_DRAWS) if leading else 0
    for name, variable in variable_names(fit.modalities).items():
        kept = fit.present[name][samples] == present
        if kept.any():
            dim = SAMPLE_ID if kept.all() else f"{SAMPLE_ID}_{variable}"
            array = values(name) if kept.all() else np.compress(kept, values(name), axis=n_leading)
            modality = fit.modalities[name]
            axes = axis_names(variable, modality)[: array.ndim - n_leading - 1]
            attributes = modality_attributes(modality) if has_unit else {"units": "nats"}
            variables[variable] = ((*_DRAWS[:n_leading], dim, *axes), array, attributes)
            coords |= {dim: samples[kept], **(position_coords(variable, modality) if axes else {})}
    return _dataset(variables, coords)


def _constant_data(fit: FitArrays) -> xr.Dataset:
    variables: dict[str, _Variable] = {}
    coords: dict[str, object] = _samples(fit)
    for name, variable in variable_names(fit.present).items():
        variables[f"present_{variable}"] = (("sample",), fit.present[name])
        if name in fit.measured_share:
            variables[f"measured_share_{variable}"] = (("sample",), fit.measured_share[name])
    for name, variable in variable_names(fit.factors).items():
        variables[f"factor_{variable}"] = (("sample",), fit.factors[name])
        coords[f"level_{variable}"] = _strings(fit.factor_levels[name])
    for name, variable in variable_names(fit.measurements).items():
        variables[f"measurement_{variable}"] = (("sample",), fit.measurements[name])
    if fit.node_labels is not None:
        coords |= _nodes(fit)
    levels = [name for name in ("test", "train", "validation") if (fit.split == name).any()]
    codes = np.argmax([fit.split == name for name in levels], axis=0)
    variables["split"] = (("sample",), codes)
    return _dataset({**variables, **_side_information(fit)}, {**coords, "split_level": _strings(levels)})


def _side_information(fit: FitArrays) -> _Variables:
    """What is known of samples besides measurements and factors: labels that were used, groups, environments."""
    groups = None if fit.groups is None else np.unique(fit.groups, return_inverse=True)[1].reshape(-1)
    found = {"labelled": fit.labelled, "node_label": fit.node_labels, "group": groups, "environment": fit.environment}
    return {name: (("sample", "node")[: values.ndim], values) for name, values in found.items() if values is not None}


def _variational(fit: FitArrays) -> xr.Dataset:
    decoded, decoded_coords = modality_variables(fit)
    edges = {"node_from": _strings(fit.graph.node_names), "node_to": _strings(fit.graph.node_names)}
    coords = {
        **_samples(fit),
        "cell": _strings(cell_names(fit.graph)),
        "component": np.arange(len(fit.mixture.loc)),
        "modality": _strings(fit.modalities),
        **_latent(fit),
        **_nodes(fit),
        **edges,
        **({"environment": _strings(fit.graph.environment_names)} if fit.graph.environment_names else {}),
        **decoded_coords,
        **{
            dim: _strings(names)
            for dim, names in zip(outcome_dimensions(fit.graph), fit.graph.outcome_names, strict=True)
        },
    }
    graph = {**_graph(fit), **_graph_posterior(fit)}
    return _dataset({**_embedding(fit), **graph, **_mixture(fit), **_variances(fit), **decoded}, coords)


def _embedding(fit: FitArrays) -> _Variables:
    return {
        "responsibilities": (("sample", "cell"), fit.responsibilities),
        "latent_loc": (("sample", "latent"), fit.latent_loc),
        "latent_scale": (("sample", "latent"), fit.latent_scale),
    }


def _graph(fit: FitArrays) -> _Variables:
    graph, pairs, outcomes = fit.graph, ("node_from", "node_to"), outcome_dimensions(fit.graph)
    return {
        "edge_strength": (pairs, graph.edge_strength, {"convention": EDGE_CONVENTION}),
        "adjacency": (pairs, graph.adjacency, {"convention": EDGE_CONVENTION}),
        "edge_weight": (pairs, graph.edge_weight),
        "node_score": (("node",), graph.node_score),
        "temperature": ((), np.asarray(graph.temperature)),
        "log_joint": (outcomes, graph.log_joint),
        "conditional_tables": (("node", *outcomes), graph.conditional_tables),
        **(
            {}
            if graph.log_joint_environment is None
            else {"log_joint_environment": (("environment", *outcomes), graph.log_joint_environment)}
        ),
        **(
            {}
            if graph.variational_edges is None
            else {"variational_edge_probability": (pairs, graph.variational_edges)}
        ),
        **_linear_model(fit),
    }


def _linear_model(fit: FitArrays) -> _Variables:
    """A of a linear structural equation model and the edges that it claims, where one was trained."""
    found, pairs = fit.graph.linear_model, ("node_from", "node_to")
    if found is None:
        return {}
    attributes = {"convention": EDGE_CONVENTION}
    arrays = {"linear_scm_strength": found.strength, "linear_scm_adjacency": found.adjacency}
    return {name: (pairs, array, attributes) for name, array in arrays.items()}


def _graph_posterior(fit: FitArrays) -> _Variables:
    """Probabilities of edges, where the nodes have a meaning."""
    found = (fit.searched or {}).get("posterior")
    if found is None:
        return {}
    names = ("edge_probability", "adjacency_probability", "compelled_probability")
    attributes = {"convention": "[i, j] belongs to i -> j; rows are causes, columns are effects"}
    return {name: (("node_from", "node_to"), np.array(found[name]), attributes) for name in names}


def _mixture(fit: FitArrays) -> _Variables:
    mixture = fit.mixture
    return {
        "component_loc": (("component", "latent"), mixture.loc),
        "component_covariance": (("component", "latent", "latent_other"), mixture.covariance),
        "component_weight": (("component",), mixture.weight),
        "component_cell": (("component",), mixture.cell),
    }


def _variances(fit: FitArrays) -> _Variables:
    """Decoder variances; NaN where the likelihood has none."""
    modalities = fit.modalities.values()
    return {
        "decoder_variance": (("modality",), np.array([m.variance for m in modalities], dtype=float)),
        "decoder_variance_training": (("modality",), np.array([m.variance_training for m in modalities], dtype=float)),
    }


def _samples(fit: FitArrays) -> dict[str, object]:
    """The samples by number, and by name where they have names."""
    names = {} if fit.sample_names is None else {"sample_name": (("sample",), _strings(fit.sample_names))}
    return {"sample": np.arange(len(fit.split)), **names}


def _latent(fit: FitArrays) -> dict[str, np.ndarray]:
    return {"latent": np.arange(fit.latent_loc.shape[1])}


def _nodes(fit: FitArrays) -> dict[str, np.ndarray]:
    return {"node": _strings(fit.graph.node_names)}


def _strings(names: Iterable[str]) -> np.ndarray:
    return np.array(list(names), dtype=object)


GROUPS: Mapping[str, Callable[[FitArrays], xr.Dataset]] = {
    "posterior": _posterior,
    "posterior_latent": chosen_latent_group,
    "posterior_predictive": _posterior_predictive,
    "predictions": _predictions,
    "prior": _prior,
    "sample_stats": _sample_stats,
    "log_likelihood": _log_likelihood,
    "observed_data": _observed_data,
    "constant_data": _constant_data,
    "variational": _variational,
    "restarts": restarts_group,
    "designed": designed_group,
    "history": lambda fit: history_group(fit.history),
}


_MOST_IN_MEMORY = 2**26
_TEXT_BYTES = 256


def to_datatree(fit: FitArrays) -> xr.DataTree:
    """The groups of the ArviZ schema, and beside them `variational` for what is not sampled, and `history`.

    - `posterior`, `prior`: draws of `Z` [chain, draw, sample_id, latent] and `N` [chain, draw, sample_id, node],
      integer; those of the prior have no sample.
    - `posterior_predictive`, `observed_data`: one variable per modality, of the samples that have it.
    - `predictions`: draws of a modality for samples that lack it.
    - `log_likelihood`: log p(x_m | z, N) in nats, one variable per modality, of the samples that have it.
    - `sample_stats`: `log_weight`, log p(x, z) - log q(z|x) in nats.
    - `constant_data`: presence, known factors (codes; their names are coordinates), measurements, split, per `sample`.
    - `variational`: responsibilities and q(Z|X) per `sample`, the graph, the mixture; per cell decoded means, nearest
      samples, examples of measured curves, and the parameters of physical laws.
    - `history`: one record per epoch.

    Draws are for a part of the samples: the coordinates along `sample_id` are their indices along `sample`. Where some
    samples lack a modality, its dimension is `sample_id_MODALITY`, so that nothing in these groups is NaN but elements
    of `observed_data` that are missing from a measurement; `log_likelihood` is that of the measured ones. Groups
    without a variable are left out.
    """
    groups = {name: group(fit) for name, group in GROUPS.items()}
    tree = xr.DataTree.from_dict({name: dataset for name, dataset in groups.items() if dataset.data_vars})
    tree.attrs = _attributes(fit)
    return tree


def write_posterior(fit: FitArrays, path: Path | str) -> None:
    """Write `to_datatree(fit)` as netCDF 4, whole or not at all.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    tree = to_datatree(fit)
    size = _size(tree)
    if size > _MOST_IN_MEMORY:
        write_atomically(path, lambda temporary: _write_to_disk(tree, temporary, size))
        return
    # By way of memory: when HDF5 itself meets a full disk, it takes the whole process down with it. And as bytes: a
    # view of a BytesIO that is left to the garbage collector, in a traceback, does the same (Python 3.12.1).
    write_bytes(path, bytes(tree.to_netcdf(engine="h5netcdf")))


def _write_to_disk(tree: xr.DataTree, path: Path, size: int) -> None:
    """Straight to the disk, once it is known that there is room: a file of that size can be made."""
    if hasattr(os, "posix_fallocate"):  # not on every system
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    with survives_full_disk(path) as raw:
        tree.to_netcdf(raw, engine="h5netcdf")


def _size(tree: xr.DataTree) -> int:
    """Bytes of the file at most, generously."""
    variables = [v for node in tree.subtree for v in node.to_dataset(inherit=False).variables.values()]
    return 2**20 + sum(v.size * max(v.dtype.itemsize, _TEXT_BYTES * (v.dtype.kind == "O")) for v in variables)


def run_facts(fit: FitArrays) -> dict[str, Any]:
    """Configuration, versions and what else is known of the fit, as plain values."""
    facts = {"bayes_ceiling": fit.bayes_ceiling, "versions": library_versions(), **fit.attributes}
    return dict(json.loads(to_json(facts)))


def _attributes(fit: FitArrays) -> dict[str, str | int]:
    return {
        "dataset": fit.dataset,
        "seed": int(fit.seed),
        "objective": fit.objective,
        "status": fit.status,
        **file_attributes(),
        "edge_convention": EDGE_CONVENTION,
        "versions": to_json(library_versions(), indent=None),
        "facts": to_json(run_facts(fit), indent=None),
    }
