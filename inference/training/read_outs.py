"""Read-outs of modalities, by name or by a function of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.labelling.read_out_functions import curve_moments, image_moments, plain_values
from models.user_code import import_module

__all__ = ["ReadOuts", "read_outs_of"]

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
        _check(name, data)
    present = np.all([data.present[name][rows] for name in wanted], axis=0)
    if not present.any():
        raise ValueError(f"read_outs: expected samples that have {', '.join(wanted)}, got none; name fewer modalities")
    parts = [_read(name, how, data, rows[present]) for name, how in wanted.items()]
    return ReadOuts(np.concatenate(parts, axis=1), present)


def _check(name: str, data: MultimodalData) -> None:
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
