"""What the exported file says of each modality: positions, units, scale, decoded curves, physical parameters."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inference.results.arrays import CurveArrays, FitArrays, ModalityArrays, PhysicsArrays
from inference.results.arviz_names import axis_names, variable_names

__all__ = ["modality_attributes", "modality_variables", "position_coords", "unit_attributes"]

_Dims = tuple[str, ...]
_Coordinate = tuple[_Dims, np.ndarray, dict[str, str]]
_Variables = dict[str, tuple[_Dims, np.ndarray, dict[str, str]]]

# With these in `units`, older versions of xarray and other readers take numbers for durations.
_TIME_WORDS = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")


def unit_attributes(unit: str) -> dict[str, str]:
    """Attributes that give a unit: `units`, or `unit` where readers would take numbers for dates or durations."""
    if not unit:
        return {}
    is_time = unit in _TIME_WORDS or " since " in unit
    return {"unit" if is_time else "units": unit}


def modality_attributes(modality: ModalityArrays) -> dict[str, str]:
    """Unit of the values, and likelihood and transform under which they were modelled; strings only."""
    return {**unit_attributes(modality.unit), "likelihood": modality.likelihood, "transform": modality.transform}


def position_coords(variable: str, modality: ModalityArrays) -> dict[str, _Coordinate]:
    """The positions of a curve, with their name and unit; nothing for other kinds."""
    dims = axis_names(variable, modality)
    if modality.axis is None or len(dims) != 1:
        return {}
    attributes = {"long_name": modality.axis.name, **unit_attributes(modality.axis.unit)}
    return {dims[0]: (dims, np.asarray(modality.axis.values, dtype=np.float64), attributes)}


def modality_variables(fit: FitArrays) -> tuple[_Variables, dict[str, _Coordinate]]:
    """Decoded means, exemplars, noise, curves and physical parameters of all modalities, and their coordinates."""
    variables: _Variables = {}
    coords: dict[str, _Coordinate] = {}
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


def _curves(variable: str, curves: CurveArrays, dims: _Dims, attributes: dict[str, str]) -> _Variables:
    found: _Variables = {f"examples_{variable}": (("cell", f"example_{variable}", *dims), curves.examples, attributes)}
    for side, values in (("lower", curves.lower), ("upper", curves.upper)):
        if values is not None:
            note = {"note": "two predictive standard deviations from decoded", **attributes}
            found[f"predictive_{side}_{variable}"] = (("cell", *dims), values, note)
    return found


def _physics(variable: str, physics: PhysicsArrays, dims: _Dims, attributes: dict[str, str]) -> _Variables:
    per_parameter = ("cell", f"parameter_{variable}")
    numbers = ("value", "standard_error", "lower", "upper")
    curves = {"law": physics.curve, "lower_law": physics.curve_lower, "upper_law": physics.curve_upper}
    _, codes = np.unique(physics.status, return_inverse=True)
    return {
        **{f"physics_{key}_{variable}": (per_parameter, getattr(physics, key), {}) for key in numbers},
        # No coordinate: those of a name with a space cannot be written as such.
        f"physics_unit_{variable}": ((f"parameter_{variable}",), _strings(physics.units), {}),
        f"physics_status_{variable}": (per_parameter, codes.reshape(physics.status.shape), {}),
        f"physics_samples_{variable}": (("cell",), physics.effective_samples, {}),
        **{f"{key}_{variable}": (("cell", *dims), array, attributes) for key, array in curves.items()},
    }


def _physics_coords(variable: str, physics: PhysicsArrays) -> dict[str, _Coordinate]:
    dim, levels = f"parameter_{variable}", f"physics_level_{variable}"
    return {
        dim: ((dim,), _strings(physics.names), {}),
        levels: ((levels,), _strings(np.unique(physics.status)), {}),
    }


def _strings(names: Iterable[str]) -> np.ndarray:
    return np.array([str(name) for name in names], dtype=object)
