"""The likelihood of p(N) with equal rows counted once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from causalpima.inference.graphs.chains import CellEvidence


def rows() -> np.ndarray:
    log_likelihood = np.random.default_rng(0).normal(scale=3.0, size=(30, 4)) - 50.0
    return np.concatenate([log_likelihood, log_likelihood[:10]])


def test_likelihood_is_the_sum_over_all_samples() -> None:
    log_joint = torch.log_softmax(torch.randn(3, 4), dim=-1)
    expected = torch.logsumexp(log_joint[:, None] + torch.from_numpy(rows()), dim=-1).sum(-1)
    evidence = CellEvidence(rows())
    assert len(evidence.weight) == 30
    assert torch.allclose(evidence.log_likelihood(log_joint), expected)


def test_weights_count_samples() -> None:
    log_joint = torch.log_softmax(torch.randn(4), dim=-1)
    weights = np.r_[np.full(10, 2.0), np.ones(20)]
    assert torch.allclose(
        CellEvidence(rows()[:30], weights).log_likelihood(log_joint), CellEvidence(rows()).log_likelihood(log_joint)
    )


def test_samples_of_known_cell_are_counts() -> None:
    with np.errstate(divide="ignore"):
        log_likelihood = np.log(np.eye(3))[[0, 0, 1, 2, 2, 2]]
    log_joint = torch.log(torch.tensor([0.2, 0.3, 0.5]))
    assert torch.allclose(CellEvidence(log_likelihood).log_likelihood(log_joint), log_joint @ torch.tensor([2.0, 1, 3]))


def test_mean_joint_is_the_maximum_up_to_one_sample() -> None:
    evidence = CellEvidence(np.random.default_rng(1).normal(scale=2.0, size=(500, 4)))
    found = evidence.mean_joint()
    assert torch.allclose(found.sum(), torch.ones(()))
    gradient = evidence.multiplicity @ (evidence.weight / (evidence.weight @ found)[:, None])  # n at an inner maximum
    assert torch.allclose(gradient, torch.full((4,), 500.0), rtol=0.05)


def test_a_sample_of_no_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="log_likelihood: expected"):
        CellEvidence(np.full((2, 3), -np.inf))
