"""Which variables are measurements, masks of them, known factors, groups, covariates and environments."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, get_args

from inference.data.options import ReadOptions
from inference.data.variables import MASK_SUFFIX, Variable

__all__ = ["Role", "Roles", "assign_roles", "check_names"]

Role = Literal["modality", "label", "group", "covariate", "environment"]
_LISTS: Mapping[str, Role] = {
    "modalities": "modality",
    "labels": "label",
    "groups": "group",
    "covariates": "covariate",
    "environment": "environment",
}
_MOST_NAMED = 8


class Roles(NamedTuple):
    """Names of variables by what they are, in the order of the source."""

    modalities: list[str]
    labels: list[str]
    groups: list[str]
    covariates: list[str]
    environment: str | None
    masks: dict[str, str]
    """Per modality that has one, the name of its mask."""


def assign_roles(source: str, variables: Mapping[str, Variable], options: ReadOptions) -> Roles:
    """Sort the variables of a source.

    A role is what the options say, else what the variable says. Of variables without any, `NAME_mask` is the mask of
    `NAME`, and the others are modalities unless the options name some.

    Args:
        source: Name of the source, for messages.
        variables: Its variables.
        options: What was asked for.

    Raises:
        ValueError: A name, a role or a mask that belongs to nothing.
    """
    check_names(source, variables, options)
    given = {name: _given(name, variable, options) for name, variable in variables.items()}
    masks = {name[: -len(MASK_SUFFIX)]: name for name, roles in given.items() if not roles and _is_mask(name)}
    if options.modalities:
        modalities = [name for name in given if name in options.modalities]
    else:
        modalities = [name for name, roles in given.items() if "modality" in roles or not (roles or _is_mask(name))]
        _check_masks(masks, modalities, variables)
    _check_kinds(options, modalities)
    others = {role: [name for name, roles in given.items() if role in roles] for role in _LISTS.values()}
    owned = {owner: mask for owner, mask in masks.items() if owner in modalities}
    return Roles(modalities, others["label"], others["group"], others["covariate"], _one(others["environment"]), owned)


def _one(environments: list[str]) -> str | None:
    if len(environments) > 1:
        raise ValueError(
            f"environment: expected one variable with this role, got {', '.join(environments)}; join them to one"
        )
    return environments[0] if environments else None


def check_names(source: str, there: Collection[str], options: ReadOptions) -> None:
    """Refuse options that name a variable which is not there.

    Raises:
        ValueError: The first such name, with those that look alike.
    """
    for part, names in options.named.items():
        for name in names:
            if name not in there:
                alike = difflib.get_close_matches(name, there, cutoff=0.6) or list(there)
                more = ", ..." if len(alike) > _MOST_NAMED else ""
                raise ValueError(
                    f"{part}: expected variables of {source}, got {name!r}; there is "
                    f"{', '.join(alike[:_MOST_NAMED]) or 'none'}{more}"
                )


def _given(name: str, variable: Variable, options: ReadOptions) -> set[str]:
    """Roles that the options or, for want of these, the variable itself names."""
    asked: set[str] = {role for part, role in _LISTS.items() if name in options.named[part]}
    if asked or variable.role is None:
        return asked
    if variable.role not in get_args(Role):
        raise ValueError(
            f"{name}: expected the attribute role {', '.join(get_args(Role))}, or none, got {variable.role!r}"
        )
    return {variable.role}


def _is_mask(name: object) -> bool:
    return isinstance(name, str) and name.endswith(MASK_SUFFIX)


def _check_masks(masks: Mapping[str, str], modalities: Collection[str], there: Collection[str]) -> None:
    for owner, mask in masks.items():
        if owner not in modalities:
            got = "one that is no modality" if owner in there else "none of that name"
            raise ValueError(
                f"{mask}: expected a modality {owner!r} that it is the mask of, got {got}; rename it, or give it the "
                "attribute role 'modality'"
            )


def _check_kinds(options: ReadOptions, modalities: Collection[str]) -> None:
    odd = next((name for name in options.kinds if name not in modalities), None)
    if odd is not None:
        raise ValueError(f"kinds: expected names of modalities ({', '.join(modalities)}), got {odd!r}")
