"""The groups of the exported file, each a dataset in the ArviZ schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import xarray as xr

from inference.results.arrays import FitArrays
from inference.results.arviz_designed import designed_group
from inference.results.arviz_history import history_group
from inference.results.arviz_modalities import modality_attributes, modality_variables, position_coords
from inference.results.arviz_names import SAMPLE_ID, TOTAL, axis_names, cell_names, outcome_dimensions, variable_names
from inference.results.arviz_restarts import chain_coords, chosen_latent_group, restarts_group
from inference.results.pareto import FEWEST_DRAWS, K_LIMIT, psis_khat
from inference.results.strict_json import to_json

__all__ = ["EDGE_CONVENTION", "GROUPS"]

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
    return lambda name: fit.draws.predictive[name][None].astype(np.float32, copy=False)


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
