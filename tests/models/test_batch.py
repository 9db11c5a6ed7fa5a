"""A batch: what was measured of it, what encoders see, and repetitions."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from causalpima.models.batch import Batch

PRESENT = torch.tensor([True, False, True, True])


def make_batch() -> Batch:
    """Four samples: `whole` is complete, `part` lacks a sample, `gaps` lacks that sample and single elements."""
    measured = torch.rand(4, 2, 3) < 0.5
    values = {"whole": torch.randn(4, 5), "part": torch.randn(4, 2), "gaps": torch.randn(4, 2, 3)}
    present = {"whole": None, "part": PRESENT, "gaps": PRESENT}
    return Batch(values, present, torch.arange(4), 40, {"gaps": measured}, torch.randn(4, 2))


def test_number_of_measured_elements() -> None:
    batch = make_batch()
    by_hand = sum(int(batch.observed["gaps"][row].sum()) for row in (0, 2, 3))
    assert [int(batch.n_elements(name)) for name in ("whole", "part", "gaps")] == [20, 6, by_hand]
    assert by_hand < int(batch.observed["gaps"].sum()), "gaps of the absent sample would count"


def test_number_of_measured_elements_of_a_modality_with_gaps_that_every_sample_has() -> None:
    batch = make_batch()
    everywhere = dataclasses.replace(batch, present={**batch.present, "gaps": None})
    assert int(everywhere.n_elements("gaps")) == int(batch.observed["gaps"].sum())


def test_numbers_have_the_type_of_the_values() -> None:
    batch = make_batch()
    single = dataclasses.replace(batch, values={name: value.float() for name, value in batch.values.items()})
    for name in batch.values:
        assert batch.n_elements(name).dtype == torch.float64
        assert single.n_elements(name).dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "hidden", "expected"),
    [
        ("whole", None, None),
        ("part", None, [1, 0, 1, 1]),
        ("whole", [0, 0, 1, 0], [1, 1, 0, 1]),
        ("part", [0, 0, 1, 0], [1, 0, 0, 1]),
        ("part", [0, 1, 0, 0], [1, 0, 1, 1]),
    ],
)
def test_what_encoders_see(name: str, hidden: list[int] | None, expected: list[int] | None) -> None:
    batch = make_batch()
    if hidden is not None:
        batch = dataclasses.replace(batch, hidden={name: torch.tensor(hidden).bool()})
    seen = batch.seen(name)
    assert (None if seen is None else seen.int().tolist()) == expected
    assert batch.present[name] is (None if name == "whole" else PRESENT), "decoders explain it all the same"


def test_repeated_whole_after_whole() -> None:
    batch = make_batch()
    three = dataclasses.replace(batch, hidden={"whole": PRESENT}).repeated(3)
    assert (len(three), three.n_samples, three.hidden) == (12, 40, {})
    assert three.index.tolist() == [0, 1, 2, 3] * 3
    for copy in range(3):
        rows = slice(4 * copy, 4 * copy + 4)
        assert all(torch.equal(three.values[name][rows], value) for name, value in batch.values.items())
        assert torch.equal(three.observed["gaps"][rows], batch.observed["gaps"])
        assert three.present["whole"] is None
        assert three.present["part"] is not None
        assert torch.equal(three.present["part"][rows], PRESENT)
        assert three.covariates is not None
        assert batch.covariates is not None
        assert torch.equal(three.covariates[rows], batch.covariates)
