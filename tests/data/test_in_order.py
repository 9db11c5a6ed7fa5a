"""Results of batches one after the other."""

from __future__ import annotations

import torch

from causalpima.inference.data.tensors import in_order


def test_it_is_what_cat_gives() -> None:
    parts = [(torch.rand(n, 2), torch.arange(n, dtype=torch.int64)) for n in (4, 4, 1)]
    found = in_order(iter(parts), 9)
    for whole, column in zip(found, zip(*parts, strict=True), strict=True):
        expected = torch.cat(column)
        assert whole.dtype == expected.dtype
        assert torch.equal(whole, expected)
