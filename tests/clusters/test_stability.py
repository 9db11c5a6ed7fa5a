"""Numbers of cells that come out the same from other samples and other starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalpima.inference.clusters.stability import Embedding, SizeRecord, compare_sizes, largest_size, largest_stable


def blobs(n: int, seed: int, scale: float = 1.0) -> np.ndarray:
    """Four round groups of unequal shares and distances, `[n, 2]`."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [6.0, 0.5], [1.0, 7.0], [12.0, 9.0]])
    group = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    return scale * (centres[group] + rng.normal(size=(n, 2)) * 0.5)


def turned(points: np.ndarray) -> np.ndarray:
    """The same samples in another latent space."""
    return 3.0 * points @ np.array([[0.6, -0.8], [0.8, 0.6]]) + 5.0


def record(n_cells: int, **changes: Any) -> SizeRecord:
    fields = {"halves": 0.95, "halves_lowest": 0.9, "starts": 0.95, "entropy": 0.01, "n_occupied": n_cells}
    return SizeRecord(n_cells=n_cells, held_out=None, **{**fields, **changes})


@pytest.fixture(scope="module")
def compared() -> list[SizeRecord]:
    first = Embedding(blobs(400, 0), blobs(50, 1))
    second = Embedding(turned(first.training), turned(first.held_out))
    return compare_sizes([first, second], range(2, 8), n_pairs=2, seed=0)


def test_four_groups_are_the_largest_stable_number(compared: list[SizeRecord]) -> None:
    assert largest_stable(compared) == 4
    at_four = compared[2]
    assert (at_four.halves, at_four.starts, at_four.n_occupied) == (1.0, 1.0, 4)
    assert at_four.entropy < 1e-3


def test_the_held_out_gain_rises_up_to_the_groups(compared: list[SizeRecord]) -> None:
    gains = [each.held_out for each in compared]
    assert gains[2] == pytest.approx(max(gains), abs=0.2)  # type: ignore[type-var]
    assert gains[0] < gains[1] < gains[2]  # type: ignore[operator]


def test_a_latent_space_in_other_units_changes_no_gain() -> None:
    one, other = (
        compare_sizes([Embedding(s * blobs(80, 0), s * blobs(30, 1))], [3], n_pairs=1, seed=0)[0] for s in (1.0, 1e3)
    )
    assert other.held_out == pytest.approx(one.held_out, rel=1e-6)


def test_one_round_group_gives_no_hint() -> None:
    cloud = np.random.default_rng(0).normal(size=(400, 2))
    records = compare_sizes([Embedding(cloud, cloud[:0])], range(2, 6), n_pairs=5, seed=0)
    assert largest_stable(records) is None
    assert all(each.held_out is None and each.starts is None for each in records)


def test_same_seed_same_records(compared: list[SizeRecord]) -> None:
    first = Embedding(blobs(400, 0), blobs(50, 1))
    second = Embedding(turned(first.training), turned(first.held_out))
    assert compare_sizes([first, second], [4], n_pairs=2, seed=0) == [compared[2]]


def test_a_hint_needs_halves_starts_and_occupied_cells() -> None:
    assert largest_stable([record(2), record(3), record(4)]) == 4
    assert largest_stable([record(2), record(3, halves=0.89)]) == 2
    assert largest_stable([record(2), record(3, starts=0.89)]) == 2
    assert largest_stable([record(2), record(3, starts=None)]) == 3
    assert largest_stable([record(2), record(3, n_occupied=2)]) == 2
    assert largest_stable([record(2, halves=0.1)]) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": [1]}, "sizes: expected numbers of cells from 2 to 5"),
        ({"sizes": [6]}, r"sizes: expected numbers of cells from 2 to 5, .* got \[6\]"),
        ({"sizes": []}, "sizes: expected numbers of cells"),
        ({"n_pairs": 0}, "n_pairs: expected at least 1, got 0"),
        ({"embeddings": []}, "embeddings: expected one or more of the same samples"),
        ({"embeddings": [Embedding(np.full((40, 2), np.nan), np.zeros((0, 2)))]}, "embedding: expected finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: dict[str, Any], message: str) -> None:
    plain = {"embeddings": [Embedding(blobs(40, 0), blobs(0, 0))], "sizes": [2], "n_pairs": 1, "seed": 0}
    assert largest_size(40) == 5
    with pytest.raises(ValueError, match=message):
        compare_sizes(**{**plain, **arguments})
