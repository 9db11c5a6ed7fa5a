"""The order of samples on disk: every sample once, neighbours together, by torch's generator alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.data.stored import windows


@given(n=st.integers(1, 700), batch_size=st.integers(1, 90), most=st.integers(1, 800), seed=st.integers(0, 99))
def test_every_sample_once_in_whole_batches(n: int, batch_size: int, most: int, seed: int) -> None:
    torch.manual_seed(seed)
    found = list(windows(n, batch_size, most))
    assert torch.cat(found).sort().values.tolist() == list(range(n))
    for window in found[:-1]:
        assert len(window) % batch_size == 0
        assert len(window) <= max(most, batch_size)
    assert sum(-(-len(window) // batch_size) for window in found) == -(-n // batch_size)


def test_what_fits_into_one_window_is_shuffled_as_in_memory() -> None:
    torch.manual_seed(3)
    expected = torch.randperm(256)
    torch.manual_seed(3)
    (found,) = windows(256, 32, 256)
    assert torch.equal(found, expected)


def test_the_generator_decides() -> None:
    def drawn(seed: int) -> list[int]:
        torch.manual_seed(seed)
        return list(torch.cat(list(windows(1000, 32, 128))).tolist())

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("batch_size", [32, 50])
def test_windows_touch_few_places_and_mix_far_ones(batch_size: int) -> None:
    torch.manual_seed(0)
    first = next(iter(windows(100_000, batch_size, 3200))).sort().values
    runs = int((first.diff() > 1).sum()) + 1
    assert runs <= 3200 // 64 + 1, "random rows would be some 3100 places"
    assert int(first.max() - first.min()) > 80_000
    assert not torch.equal(first, first[0] + torch.arange(len(first)))


def test_batches_of_a_window_mix_its_places() -> None:
    """A batch of 64 out of 50 blocks comes from 36 of them on average; unshuffled, from one or two."""
    torch.manual_seed(0)
    batch = next(iter(windows(100_000, 64, 3200)))[:64]
    assert len(torch.unique(batch // 64)) > 20
