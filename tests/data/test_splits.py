"""The split: sizes, strata, groups, and the seed alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.data.tensors import split_samples

SHARE = st.floats(0.0, 0.49)


def counts(split: np.ndarray) -> dict[str, int]:
    return {name: int((split == name).sum()) for name in ("train", "validation", "test")}


@given(n=st.integers(1, 300), validation=SHARE, test=SHARE, seed=st.integers(0, 2**32))
def test_split_has_the_sizes_asked_for_and_keeps_a_training_sample(
    n: int, validation: float, test: float, seed: int
) -> None:
    split = split_samples(n, validation, seed, test)
    assert set(split) <= {"train", "validation", "test"}
    found = counts(split)
    assert found["test"] == min(round(n * test), n - 1)
    assert found["validation"] == min(round(n * validation), n - found["test"] - 1)
    assert found["train"] >= 1
    assert (split == split_samples(n, validation, seed, test)).all()


def test_split_depends_on_the_seed_and_on_no_other_generator() -> None:
    splits = [split_samples(100, 0.3, seed) for seed in range(5)]
    assert len({tuple(split) for split in splits}) == 5
    np.random.seed(1)
    torch.manual_seed(1)
    assert (split_samples(100, 0.3, 0) == splits[0]).all()


@pytest.mark.parametrize("part", ["validation", "test"])
def test_every_sample_is_as_likely_as_any_other(part: str) -> None:
    drawn = [split_samples(10, 0.3, seed, 0.3, {"a": np.arange(10) % 3}) == part for seed in range(600)]
    np.testing.assert_allclose(np.mean(drawn, axis=0), 0.3, atol=4.5 * (0.3 * 0.7 / 600) ** 0.5)


@given(seed=st.integers(0, 999))
def test_every_combination_of_factors_gives_its_share(seed: int) -> None:
    type_, treated = np.repeat([0, 1], [80, 20]), np.tile([0, 1], 50)
    split = split_samples(100, 0.2, seed, 0.2, {"type": type_, "treated": treated})
    for t in (0, 1):
        for u in (0, 1):
            cell = (type_ == t) & (treated == u)
            for part in ("validation", "test"):
                assert abs(int((split[cell] == part).sum()) - 0.2 * cell.sum()) <= 1.5


@given(seed=st.integers(0, 999), validation=SHARE, test=SHARE)
def test_groups_stay_on_one_side(seed: int, validation: float, test: float) -> None:
    generator = np.random.default_rng(seed)
    groups = generator.permutation(np.repeat(np.arange(12), generator.integers(1, 9, 12))) * 7
    split = split_samples(len(groups), validation, seed, test, {"a": groups % 2}, groups)
    for group in np.unique(groups):
        assert len(set(split[groups == group])) == 1
    n_groups = {part: len(set(groups[split == part])) for part in ("train", "validation", "test")}
    assert n_groups["test"] == min(round(12 * test), 11)
    assert n_groups["train"] >= 1
