"""The schedule of an augmented Lagrangian by hand, and its state."""

from __future__ import annotations

import pytest
import torch

from causalpima.models.dag import AugmentedLagrangian, augmented_cost


def test_the_cost_by_hand() -> None:
    h = torch.tensor(3.0, requires_grad=True)
    cost = augmented_cost(h, torch.tensor(2.0), torch.tensor(10.0))
    assert cost.item() == 2 * 3 + 10 * 9 / 2
    assert torch.autograd.grad(cost, h)[0].item() == 2 + 10 * 3


def test_the_state_of_the_constraint_after_rounds_by_hand() -> None:
    constraint = AugmentedLagrangian()
    assert float(constraint.cost(torch.tensor(2.0))) == 2.0
    constraint.advance(torch.tensor(2.0))  # the first round: nothing to compare with
    constraint.advance(torch.tensor(1.0))  # fell to a half, not to a quarter
    constraint.advance(torch.tensor(0.2))  # fell enough
    assert (float(constraint.multiplier), float(constraint.penalty)) == (2 + 1 + 10 * 0.2, 10.0)
    assert float(constraint.cost(torch.tensor(0.1))) == pytest.approx(5 * 0.1 + 5 * 0.01)
    constraint.advance(torch.tensor(1e-7))  # as good as none: nothing changes
    assert (float(constraint.multiplier), float(constraint.penalty)) == (5.0, 10.0)
    for _ in range(9):
        constraint.advance(torch.tensor(1.0))
    assert float(constraint.penalty) == 1e4


def test_state_is_saved_and_restored() -> None:
    constraint, other = AugmentedLagrangian(), AugmentedLagrangian()
    constraint.advance(torch.tensor(3.0))
    constraint.advance(torch.tensor(3.0))
    other.load_state_dict(constraint.state_dict())
    assert float(other.cost(torch.tensor(1.0))) == float(constraint.cost(torch.tensor(1.0))) == 6 + 5
