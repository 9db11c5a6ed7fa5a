"""p(N | e): the table of the target is replaced, and nothing else."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from small_model import make_batch, make_model
from torch import Tensor

from causalpima.models.environments import EnvironmentTables
from causalpima.models.graph.table import TableGraph

OUTCOMES = (2, 3, 2)
EDGES = torch.tensor([[0, 1, 1], [0, 0, 1], [0, 0, 0]])


def graph() -> TableGraph:
    found = TableGraph(OUTCOMES, EDGES)
    found.fit(torch.rand(OUTCOMES, generator=torch.Generator().manual_seed(0)) * 50, 1.0)
    return found


def own(do: bool) -> Tensor:
    """A table of the second node: by itself, or given its cause."""
    table = torch.rand(1 if do else 2, 3, 1, generator=torch.Generator().manual_seed(1)) + 0.1
    return table / table.sum(1, keepdim=True)


def tables() -> EnvironmentTables:
    """No intervention; do(second node); another that was not seen in training; a soft one upon the second."""
    found = EnvironmentTables()
    found.replace([None, 1, None, 1], [None, own(True), None, own(False)], graph().log_joint())
    return found


def by_hand(environment: int) -> Tensor:
    """∏ over nodes, cell by cell."""
    table, joint = graph().conditional_log_tables().exp(), torch.ones(OUTCOMES)
    for cell in product(*map(range, OUTCOMES)):
        for node in range(3):
            if node == 1 and environment in (1, 3):
                joint[cell] *= own(environment == 1)[cell[0] if environment == 3 else 0, cell[1], 0]
            else:
                joint[cell] *= table[node][cell]
    return joint


def test_the_target_alone_has_another_table() -> None:
    log_tables = graph().conditional_log_tables()
    joint = tables().log_joint(log_tables)
    assert joint is not None
    for environment in range(4):
        torch.testing.assert_close(joint[environment].exp(), by_hand(environment))
        torch.testing.assert_close(joint[environment].exp().sum(), torch.tensor(1.0))
    shift = tables().log_shift(log_tables, torch.tensor([3, 0, 1, 2]))
    assert shift is not None
    torch.testing.assert_close(shift, (joint[[3, 0, 1, 2]] - joint[0]).flatten(1))


def test_samples_have_the_tables_of_their_environment() -> None:
    log_tables = graph().conditional_log_tables()
    found = tables().log_tables(log_tables, torch.tensor([0, 1]))
    assert found.shape == (2, 3, *OUTCOMES)
    torch.testing.assert_close(found[0], log_tables)
    torch.testing.assert_close(found[1, [0, 2]], log_tables[[0, 2]])
    torch.testing.assert_close(found[1, 1].exp(), own(True).expand(OUTCOMES))
    assert tables().log_tables(log_tables, None) is log_tables
    assert tables().log_shift(log_tables, None) is None


def test_an_outcome_that_never_occurs_keeps_a_finite_weight() -> None:
    found = EnvironmentTables()
    found.replace([None, 1], [None, torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1)], graph().log_joint())
    joint = found.log_joint(graph().conditional_log_tables())
    assert joint is not None
    assert bool(joint.isfinite().all())
    torch.testing.assert_close(joint[1].exp().sum((0, 2)), torch.tensor([1.0, 0.0, 0.0]), atol=1e-11, rtol=0)


def test_without_environments_there_is_nothing() -> None:
    found = EnvironmentTables()
    assert found.log_joint(graph().conditional_log_tables()) is None
    assert found.state_dict() == {}
    with pytest.raises(ValueError, match=r"^tables: expected one for each target, got 2 for"):
        found.replace([None, 0], [None, None], graph().log_joint())


def test_weights_come_back_with_and_without_environments() -> None:
    model, target = make_model(), torch.tensor([0.2, 0.8]).reshape(2, 1)
    earlier = model.state_dict()
    model.environments.replace([None, 0], [None, target], model.graph.log_joint())
    later = {name: value.clone() for name, value in model.state_dict().items()}
    assert set(later) - set(earlier) == {"environments.target", "environments.log_own"}
    other = make_model(seed=1)
    other.load_state_dict(later)
    batch = make_batch()
    coded = type(batch)(batch.values, batch.present, batch.index, 5, environment=torch.tensor([0, 1, 1, 0, 1]))
    torch.testing.assert_close(other.log_weight(coded), model.log_weight(coded))
    assert other.log_weight(coded).shape == (5, 9)
    torch.testing.assert_close(other.log_weight(coded)[0], model.log_weight())
    other.load_state_dict(earlier)
    assert other.environments.target is None
    assert other.log_weight(coded).shape == (9,)


def test_cells_with_other_numbers_have_no_environments() -> None:
    model = make_model()
    del model.decoders["curve"]
    model.environments.replace([None, 0], [None, torch.tensor([0.2, 0.8]).reshape(2, 1)], model.graph.log_joint())
    assert model.with_decoders({}).environments is model.environments
    model.relabel(torch.tensor([1, 0, 2, 3, 4, 5]))
    assert model.environments.target is None
