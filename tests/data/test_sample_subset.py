"""Some of the samples are those samples, in every part of the data."""

from __future__ import annotations

import dataclasses

import numpy as np

from causalpima.inference.data.multimodal import MultimodalData, sample_subset


def test_every_array_of_samples_is_cut_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    present = np.array([True, False, True, True, True])
    data = MultimodalData(
        name="x",
        modalities={"a": rng.normal(size=(5, 3)).astype(np.float32)},
        present={"a": present},
        kinds={"a": "vector"},
        factors={"f": np.array([0, 1, 1, 0, -1])},
        factor_levels={"f": ("u", "v")},
        measurements={"m": np.arange(5.0)},
        observed={"a": rng.random((5, 3)) < 0.5},
        groups=np.array([0, 0, 1, 1, 2]),
        covariates={"c": np.array([1, 0, 1, 0, 1])},
        covariate_levels={"c": ("p", "q")},
        sample_names=np.array(list("abcde")),
        environment=np.array([0, 0, 1, 1, 0]),
    )
    index = np.array([4, 0, 2])
    found = sample_subset(data, index)
    assert found.n_samples == 3
    assert found.factor_levels == data.factor_levels
    for field in dataclasses.fields(MultimodalData):
        value, cut = getattr(data, field.name), getattr(found, field.name)
        if isinstance(value, np.ndarray):
            assert np.array_equal(cut, value[index]), field.name
        elif isinstance(value, dict) and value and isinstance(next(iter(value.values())), np.ndarray):
            assert all(np.array_equal(cut[name], array[index]) for name, array in value.items()), field.name
        else:
            assert cut == value, field.name


def test_what_is_not_there_stays_away() -> None:
    data = MultimodalData(
        "x", {"a": np.zeros((2, 1), dtype=np.float32)}, {"a": np.ones(2, dtype=bool)}, {"a": "vector"}
    )
    found = sample_subset(data, np.array([1]))
    assert found.groups is found.sample_names is found.environment is None
