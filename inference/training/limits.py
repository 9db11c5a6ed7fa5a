"""What the settings of a fit may be; everything else is refused by name."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from inference.training.component_limits import check_components
from inference.training.graph_choice import check_graph
from inference.training.mask_limits import check_mask
from inference.training.modality_limits import check_modality
from inference.training.side_information import check_side_information

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["check_settings"]

_Rule = tuple[Callable[[float], bool], str]

_MOST = 2**31
# The largest number of single precision, in which models compute.
_LARGEST = 3e38
_POSITIVE: _Rule = (lambda value: 0 < value < _LARGEST, "> 0 and below 3e38")
_NOT_NEGATIVE: _Rule = (lambda value: 0 <= value < _LARGEST, ">= 0 and below 3e38")
_SIZE: _Rule = (lambda value: 0 < value < _MOST, "> 0 and below 2**31")
_COUNT: _Rule = (lambda value: 0 <= value < _MOST, ">= 0 and below 2**31")
_SHARE: _Rule = (lambda value: 0 <= value < 1, "in [0, 1)")
_PART: _Rule = (lambda value: 0 < value <= 1, "in (0, 1]")
_SEED: _Rule = (lambda value: 0 <= value < 2**32, "in [0, 2**32)")
_RULES: Mapping[str, _Rule] = {
    "seed": _SEED,
    "restart": _COUNT,
    "latent_dim": _SIZE,
    "epochs": _COUNT,
    "kl_weight": _POSITIVE,
    "kl_warmup": _COUNT,
    "batch_size": _SIZE,
    "learning_rate": _POSITIVE,
    "validation_fraction": _SHARE,
    "test_fraction": _SHARE,
    "modality_dropout": _SHARE,
    "fraction": _PART,
    "transform_knee": _NOT_NEGATIVE,
    "weight": _POSITIVE,
    "patience": _COUNT,
    "start_steps": _COUNT,
    "extra_steps": _COUNT,
    "temperature_start": _POSITIVE,
    "temperature_end": _POSITIVE,
    "noise_start": _NOT_NEGATIVE,
    "noise_end": _NOT_NEGATIVE,
    "edge_rate": _NOT_NEGATIVE,
    "edge_penalty": _NOT_NEGATIVE,
    "table_penalty": _NOT_NEGATIVE,
    "acyclicity_tolerance": _POSITIVE,
    "updates_per_epoch": _COUNT,
    "pseudo_count": _POSITIVE,
    "variance_floor": _POSITIVE,
    "variance_initial": _POSITIVE,
    "n_init": _SIZE,
}


def check_settings(config: FitConfig) -> None:
    """Refuse settings that no fit can have, whatever the data.

    Raises:
        ValueError: A value of another type, no choice, or out of range; the message begins with its name.
    """
    for name, kind, value in _leaves(config, ""):
        _check_kind(name, kind, value)
    for name, entry in config.modality.items():
        check_modality(f"modality.{name}", entry)
    _check_fractions(config.training.validation_fraction, config.training.test_fraction)
    _check_nodes(config.nodes)
    check_side_information(config)
    _check_read_out(config.read_out.sizes, math.prod(config.outcomes))
    check_mask(config)
    check_graph(config)
    check_components(config)


def _leaves(part: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and value of every setting but the nodes and the mask."""
    part_type: Any = type(part)
    for field, kind in _fields(part_type):
        name, value = prefix + field, getattr(part, field)
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, f"{name}.")
        elif field == "modality":
            for modality, entry in value.items():
                yield from _leaves(entry, f"modality.{modality}.")
        elif field not in ("nodes", "mask"):
            yield name, kind, value


@functools.cache
def _fields(part: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of the fields of a part of a configuration."""
    hints = get_type_hints(part)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(part))


def _check_kind(name: str, kind: Any, value: Any) -> None:
    form = _form(kind)
    if form is not None:
        holds, expected = form
        if not holds(value):
            _require(False, name, expected, repr(value))
    elif kind in (int, float):
        _check_number(name, kind, value)
    else:
        _check_widths(name, value)


@functools.cache
def _form(kind: Any) -> tuple[Callable[[Any], bool], str] | None:
    """What values of a type look like; None: they have a check of their own."""
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return (lambda value: value in choices), f"one of {', '.join(choices)}"
    if get_origin(kind) is dict:
        return (lambda value: isinstance(value, Mapping)), "arguments by name"
    return _FORMS.get(kind)


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(word, str) and bool(word) for word in value)


def _are_groups(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_are_names, value))


def _are_pairs(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair)


_FORMS: Mapping[Any, tuple[Callable[[Any], bool], str]] = {
    bool: (lambda value: isinstance(value, bool), "true or false"),
    str: (lambda value: isinstance(value, str) and bool(value), "a name"),
    Mapping[str, str]: (_are_pairs, "names by name, for example {'type': 'alloy'}"),
    tuple[str, ...]: (_are_names, "names, for example ('type', 'response')"),
    tuple[tuple[str, ...], ...]: (_are_groups, "groups of names, for example (('type',), ('response',))"),
}


def _check_number(name: str, kind: type, value: Any) -> None:
    holds, expected = _RULES[name.rpartition(".")[2]]
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    _require(is_number and holds(float(value)), name, f"a number {expected}", value)
    _require(kind is float or isinstance(value, numbers.Integral), name, "a whole number", value)


def _check_widths(name: str, sizes: Any) -> None:
    are_whole = isinstance(sizes, tuple | list) and all(isinstance(size, numbers.Integral) for size in sizes)
    _require(are_whole, name, "whole numbers, for example (64, 32)", repr(sizes))
    _require(all(size > 0 for size in sizes), name, "widths >= 1", list(sizes))
    _require(all(size < _MOST for size in sizes), name, "widths below 2**31", list(sizes))


def _check_nodes(nodes: Mapping[str, Any]) -> None:
    if not nodes:
        raise ValueError("nodes: expected at least one node, got none; give the outcomes per node, for example 2,2")
    for name, outcomes in nodes.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"nodes: expected names that are words, got {name!r}; rename this node")
        if not isinstance(outcomes, int) or isinstance(outcomes, bool) or outcomes < 2:
            raise ValueError(f"nodes: expected at least 2 outcomes for {name}, an integer, got {outcomes!r}")


def _check_read_out(sizes: tuple[int, ...], n_cells: int) -> None:
    if any(size < n_cells for size in sizes):
        raise ValueError(
            f"read_out.sizes: expected at least {n_cells} Gaussians, one per cell, got {list(sizes)}; "
            "leave it empty to have them chosen"
        )


def _check_fractions(validation: float, test: float) -> None:
    if validation + test >= 1:
        raise ValueError(
            f"training: expected validation_fraction and test_fraction of less than 1 together, got {validation} and "
            f"{test}; leave some samples for training"
        )


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    if not holds:
        raise ValueError(f"{name}: expected {expected}, got {value}")
