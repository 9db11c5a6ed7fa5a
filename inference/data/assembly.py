"""Variables in their roles, put together as samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inference.data.categories import Categories, joint_groups, to_categories
from inference.data.environments import Environment, to_environment
from inference.data.modalities import Modality, to_modality
from inference.data.multimodal import MultimodalData
from inference.data.options import ReadOptions
from inference.data.roles import Roles, assign_roles
from inference.data.stored import StoredVariable
from inference.data.stored_modality import to_stored_modality
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
    return MultimodalData(
        name=name,
        modalities={key: modality.values for key, modality in modalities.items()},
        present={key: modality.present for key, modality in modalities.items()},
        kinds={key: modality.kind for key, modality in modalities.items()},
        factors={key: category.codes for key, category in factors.items()},
        factor_levels={key: category.levels for key, category in factors.items()},
        observed={key: modality.observed for key, modality in modalities.items() if modality.observed is not None},
        axes={key: axis for key in modalities if (axis := variables[key].axis) and modalities[key].kind == "curve"},
        units={key: variables[key].unit for key in modalities if variables[key].unit},
        groups=joint_groups([category.codes for category in groups.values()]),
        covariates={key: category.codes for key, category in covariates.items()},
        covariate_levels={key: category.levels for key, category in covariates.items()},
        sample_names=sample_names,
        environment=None if environment is None else environment.codes,
        environment_names=() if environment is None else environment.names,
    )


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
