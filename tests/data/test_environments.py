"""The environment of every sample, from files and arrays."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions, to_environment

LEVELS = np.array(["heated", "observational", "cooled", "observational"])


def arrays() -> dict[str, np.ndarray]:
    return {"curve": np.random.default_rng(0).random((4, 5)), "oven": LEVELS}


def test_the_observational_environment_is_the_first() -> None:
    data = as_multimodal(arrays(), ReadOptions(environment=("oven",)))
    assert data.environment_names == ("observational", "cooled", "heated")
    assert data.environment is not None
    assert data.environment.tolist() == [2, 0, 1, 0]
    assert list(data.modalities) == ["curve"]


def test_another_level_may_be_without_intervention() -> None:
    found = to_environment("oven", LEVELS, 4, "heated")
    assert found.names == ("heated", "cooled", "observational")
    assert found.codes.tolist() == [0, 2, 1, 2]


def test_samples_under_interventions_alone_are_read() -> None:
    found = to_environment("oven", np.array([3, 1]), 2, None)
    assert found.names == ("observational", "1", "3")
    assert found.codes.tolist() == [2, 1]


def test_a_dataset_says_it_by_itself() -> None:
    dataset = xr.Dataset(
        {"curve": (("sample", "t"), arrays()["curve"]), "oven": ("sample", LEVELS, {"role": "environment"})}
    )
    data = as_multimodal(dataset)
    assert data.environment_names == ("observational", "cooled", "heated")
    assert as_multimodal(dataset, ReadOptions(observational="cooled")).environment_names[0] == "cooled"


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (
            LEVELS,
            ReadOptions(environment=("oven",), observational="cold"),
            r"^observational: expected a level of oven \(cool",
        ),
        (
            LEVELS[:3],
            ReadOptions(environment=("oven",)),
            r"^oven: expected 4 samples, as many as the modalities have, got 3",
        ),
        (
            np.array(["a", "", "b", "b"]),
            ReadOptions(environment=("oven",)),
            r"^oven: expected a level for every sample",
        ),
        (
            LEVELS,
            ReadOptions(labels=("oven",), observational="cooled"),
            r"^observational: expected a variable that tells",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(values: np.ndarray, options: ReadOptions, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        as_multimodal({**arrays(), "oven": values}, options)
    assert "\n" not in str(error.value)


def test_one_variable_at_most() -> None:
    with pytest.raises(ValueError, match=r"^environment: expected one variable, got a, b"):
        ReadOptions(environment=("a", "b"))
    both = xr.Dataset(
        {name: ("sample", LEVELS, {"role": "environment"}) for name in ("a", "b")} | {"x": ("sample", np.arange(4.0))}
    )
    with pytest.raises(ValueError, match=r"^environment: expected one variable with this role, got a, b"):
        as_multimodal(both)


def test_no_modality_at_the_same_time() -> None:
    with pytest.raises(ValueError, match=r"^modalities: expected names without another role, got oven"):
        ReadOptions(modalities=("oven",), environment=("oven",))
