"""Modalities hidden while training: how often, never all of a sample, and what is drawn."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from causalpima.inference.training.loop import hide_modalities
from causalpima.models.batch import Batch


def make_batch(n: int, present: dict[str, Tensor | None]) -> Batch:
    return Batch({name: torch.zeros(n, 2) for name in present}, present, torch.arange(n), n)


def complete(n: int, n_modalities: int) -> Batch:
    return make_batch(n, dict.fromkeys([f"m{i}" for i in range(n_modalities)]))


def seen(batch: Batch) -> Tensor:
    """Bool `[modality, sample]`."""
    masks = [batch.seen(name) for name in batch.values]
    return torch.stack([torch.ones(len(batch), dtype=torch.bool) if mask is None else mask for mask in masks])


def probability_of(pattern: tuple[bool, ...], p: float) -> float:
    """Of a pattern of seen modalities: independent ones, and an evenly drawn one where none would be seen."""
    n, k = len(pattern), sum(pattern)
    return (1 - p) ** k * p ** (n - k) * (k > 0) + p**n / n * (k == 1)


@pytest.mark.parametrize(("n_modalities", "p"), [(2, 0.3), (3, 0.6)])
def test_every_pattern_is_as_frequent_as_it_should_be(n_modalities: int, p: float) -> None:
    n, found = 40_000, seen(hide_modalities(complete(40_000, n_modalities), p))
    total = 0.0
    for pattern in itertools.product([False, True], repeat=n_modalities):
        expected = probability_of(pattern, p)
        share = (found == torch.tensor(pattern).unsqueeze(-1)).all(0).double().mean().item()
        assert abs(share - expected) <= 4.5 * (expected * (1 - expected) / n) ** 0.5
        total += expected
    assert total == pytest.approx(1)


def test_what_is_absent_is_neither_seen_nor_hidden_and_the_rest_is_drawn_as_ever() -> None:
    n, p = 30_000, 0.5
    absent = torch.arange(n) % 3 == 0
    batch = hide_modalities(make_batch(n, {"a": ~absent, "b": None, "c": None}), p)
    assert not (batch.hidden["a"] & absent).any()
    found = seen(batch)
    assert not found[0, absent].any()
    for pattern in itertools.product([False, True], repeat=2):
        expected = probability_of(pattern, p)
        share = (found[1:, absent] == torch.tensor(pattern).unsqueeze(-1)).all(0).double().mean().item()
        assert abs(share - expected) <= 4.5 * (expected * (1 - expected) / int(absent.sum())) ** 0.5


@given(seed=st.integers(0, 10**6), p=st.floats(0.01, 0.999), n_modalities=st.integers(2, 4))
def test_at_least_one_modality_is_seen_where_there_is_one(seed: int, p: float, n_modalities: int) -> None:
    torch.manual_seed(seed)
    present: dict[str, Tensor | None] = {f"m{i}": torch.rand(40) < 0.5 for i in range(n_modalities)}
    batch = make_batch(40, present)
    hidden = hide_modalities(batch, p)
    assert torch.equal(seen(hidden).any(0), seen(batch).any(0))
    assert hidden.present is batch.present, "decoders explain what is hidden"
    assert all(not (hidden.hidden[name] & ~mask).any() for name, mask in present.items() if mask is not None)


@pytest.mark.parametrize(("n_modalities", "p"), [(2, 0.0), (1, 0.5)])
def test_nothing_is_drawn_where_nothing_can_be_hidden(n_modalities: int, p: float) -> None:
    batch, before = complete(10, n_modalities), torch.get_rng_state()
    assert hide_modalities(batch, p) is batch
    assert torch.equal(torch.get_rng_state(), before)


def test_all_else_of_the_batch_stays() -> None:
    batch = dataclasses.replace(
        complete(10, 2), observed={"m0": torch.rand(10, 2) < 0.5}, covariates=torch.randn(10, 3), n_samples=70
    )
    hidden = hide_modalities(batch, 0.5)
    assert hidden.observed is batch.observed
    assert hidden.covariates is batch.covariates
    assert (hidden.values, hidden.n_samples) == (batch.values, 70)
    assert torch.equal(hidden.index, batch.index)
