"""Variables in their roles, put together as samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from inference.data.categories import Categories, gap_like_levels, joint_groups, to_categories
from inference.data.environments import Environment, to_environment
from inference.data.modalities import Modality, arranged_names, to_modality
from inference.data.multimodal import Dimensions, MultimodalData
from inference.data.options import ReadOptions
from inference.data.roles import Roles, assign_roles
from inference.data.stored import StoredArray, StoredVariable
from inference.data.stored_modality import to_stored_modality
from inference.data.value_checks import find_sentinels, some_of
from inference.data.variables import Variable

__all__ = ["assemble"]


def assemble(
    name: str, variables: Mapping[str, Variable], options: ReadOptions, sample_names: np.ndarray | None = None
) -> MultimodalData:
    """Samples from variables that have one entry per sample each.

    Args:
        name: Name of the data set.
        variables: By name; masks, labels, groups and covariates among them.
        options: Which of them are what.
        sample_names: Names `[sample]`, or None.

    Raises:
        ValueError: A variable that cannot be what it should be, by name.
    """
    roles = assign_roles(name, variables, options)
    modalities = {key: _modality(key, variables, roles, options) for key in roles.modalities}
    n_samples = len(next(iter(modalities.values())).present) if modalities else 0
    factors = _categories(variables, roles.labels, n_samples, may_lack=True)
    covariates = _categories(variables, roles.covariates, n_samples, kind="level")
    groups = _categories(variables, roles.groups, n_samples, kind="group")
    environment = _environment(variables, roles, options, n_samples)
    told = {} if environment is None else {str(roles.environment): Categories(environment.names, environment.codes)}
    categories = factors | covariates | told
    return MultimodalData(
        name=name,
        modalities={key: modality.values for key, modality in modalities.items()},
        present={key: modality.present for key, modality in modalities.items()},
        kinds={key: modality.kind for key, modality in modalities.items()},
        factors={key: category.codes for key, category in factors.items()},
        factor_levels={key: category.levels for key, category in factors.items()},
        scored=options.labels,
        observed={key: modality.observed for key, modality in modalities.items() if modality.observed is not None},
        axes={key: axis for key in modalities if (axis := variables[key].axis) and modalities[key].kind == "curve"},
        units={key: variables[key].unit for key in modalities if variables[key].unit},
        dimensions={key: found for key in modalities if (found := _dimensions(variables[key]))},
        groups=joint_groups([category.codes for category in groups.values()]),
        covariates={key: category.codes for key, category in covariates.items()},
        covariate_levels={key: category.levels for key, category in covariates.items()},
        sample_names=sample_names,
        environment=None if environment is None else environment.codes,
        environment_names=() if environment is None else environment.names,
        notes=(
            *(note for key, modality in modalities.items() for note in _sentinel_notes(key, modality)),
            *(note for key, category in categories.items() for note in _level_notes(key, category)),
        ),
    )


def _dimensions(variable: Variable) -> Dimensions | None:
    found = variable.dimensions
    return found and replace(found, names=arranged_names(found.names, tuple(variable.values.shape)))


def _sentinel_notes(name: str, modality: Modality) -> list[str]:
    """Values that may stand for a gap and were not declared."""
    values = modality.values
    if isinstance(values, StoredArray):
        some = values.scan.some
    else:
        present = np.broadcast_to(modality.present.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
        some = some_of(values, present if modality.observed is None else modality.observed)
    return [
        f"{name}: {100 * found.share:.2g} % of the values are exactly {found.value:g}, away from all others "
        f"({found.lowest:g} to {found.highest:g}); if that is no measurement, write NaN, or, in a .nc or .zarr file, "
        f"declare it as the attribute missing_value of {name}"
        for found in find_sentinels(some)
    ]


def _level_notes(name: str, category: Categories) -> list[str]:
    counts = np.bincount(category.codes[category.codes >= 0], minlength=len(category.levels))
    return [
        f"{name}: {level!r} in {counts[category.levels.index(level)]} of {len(category.codes)} samples looks like a "
        "missing entry, and counts as a level; leave it empty there (or NaN) if it is none"
        for level in gap_like_levels(category.levels)
    ]


def _environment(
    variables: Mapping[str, Variable], roles: Roles, options: ReadOptions, n_samples: int
) -> Environment | None:
    name = roles.environment
    if name is not None:
        return to_environment(name, variables[name].values, n_samples, options.observational)
    if options.observational is not None:
        raise ValueError("observational: expected a variable that tells environments, got none; name it as environment")
    return None


def _modality(name: str, variables: Mapping[str, Variable], roles: Roles, options: ReadOptions) -> Modality:
    variable = variables[name]
    mask = variables[roles.masks[name]].values if name in roles.masks else None
    kind = options.kinds.get(name) or variable.kind or ("curve" if variable.axis is not None else None)
    if isinstance(variable.values, StoredVariable):
        return to_stored_modality(name, variable.values, kind, mask)
    return to_modality(name, variable.values, kind, mask)


def _categories(
    variables: Mapping[str, Variable], names: Sequence[str], n_samples: int, may_lack: bool = False, kind: str = "label"
) -> dict[str, Categories]:
    found = {name: to_categories(name, variables[name].values, may_lack, kind) for name in names}
    for name, category in found.items():
        if n_samples and len(category.codes) != n_samples:
            raise ValueError(
                f"{name}: expected {n_samples} samples, as many as the modalities have, got {len(category.codes)}; "
                "give one entry per sample"
            )
    return found
