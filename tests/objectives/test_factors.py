"""The direct contraction from factors alone: impossible cells, and terms that add up."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from causalpima.inference.objectives.enumerated import Factor, Factors, contract

BATCH = 4


def factors(log_r: Tensor | None) -> Factors:
    """Two nodes with two and three outcomes; one outcome of the second node has probability zero."""
    first = torch.log_softmax(torch.randn(2, 1, BATCH), dim=0)
    second = torch.log_softmax(torch.tensor([0.3, -torch.inf, 1.0]), dim=0).reshape(3, 1, 1).expand(3, 1, BATCH)
    model = [
        Factor("N_A", "cells", first),
        Factor("N_B", "cells", second.movedim(0, 1)),
        Factor("Z", "latent", torch.randn(2, 3, BATCH)),
        Factor("X_a", "observed", torch.randn(BATCH)),
        Factor("X_b", "observed", torch.randn(1, 3, BATCH)),
    ]
    return Factors(model, [] if log_r is None else [log_r], [torch.randn(BATCH)], 1.0, BATCH)


def guide(impossible: float) -> Tensor:
    logits = torch.randn(2, 3, BATCH)
    logits[:, 1] = impossible
    return torch.log_softmax(logits.flatten(0, 1), dim=0).reshape(2, 3, BATCH)


@pytest.mark.parametrize("impossible", [None, -torch.inf, -1e5], ids=["in the model", "in the guide", "underflow"])
def test_an_impossible_cell_counts_nothing(impossible: float | None) -> None:
    parts = factors(None if impossible is None else guide(impossible))
    bound, terms = contract(parts)
    assert bound.isfinite().all()
    torch.testing.assert_close(terms.total, bound, rtol=1e-12, atol=1e-12)
    possible = [
        factor.log_prob[..., [0, 2], :] if factor.log_prob.shape[-2] == 3 else factor.log_prob
        for factor in parts.model
        if factor.log_prob.dim() > 1
    ]
    joint = possible[0] + possible[1] + possible[2] + possible[3]
    log_r = joint - torch.logsumexp(joint, (0, 1)) if impossible is None else parts.guide_cells[0][:, [0, 2]]
    expected = (log_r.exp() * (joint - log_r)).sum((0, 1)) + parts.model[3].log_prob - parts.guide_latent[0]
    torch.testing.assert_close(bound, expected, rtol=1e-12, atol=1e-12)


def test_not_a_number_is_not_hidden() -> None:
    parts = factors(None)
    parts.model[2].log_prob[0, 0, 1] = torch.nan
    bound, terms = contract(parts)
    assert bound.isnan().tolist() == terms.total.isnan().tolist() == [False, True, False, False]
