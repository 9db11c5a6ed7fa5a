"""Re-seeding: empty components split the largest, the rest stays, and what comes out is a mixture."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_mixtures import KINDS, MAPS, make_mixture

from causalpima.inference.training.mixture_updates import reseed
from causalpima.models.mixture import Covariance, GaussianMixture

kinds = pytest.mark.parametrize("kind", KINDS)
maps = pytest.mark.parametrize("cell", MAPS.values(), ids=MAPS.keys())


def cell_shares(mixture: GaussianMixture) -> Tensor:
    return mixture.sum_to_cells(mixture.component_log_share.exp())


@kinds
@maps
def test_nothing_is_moved_where_nothing_is_empty(cell: list[int], kind: Covariance) -> None:
    mixture = make_mixture(cell, kind)
    before = {name: value.clone() for name, value in mixture.state_dict().items()}
    assert reseed(mixture, torch.linspace(1.0, 2.0, len(cell)), 0.01)[0] == []
    assert all(torch.equal(value, before[name]) for name, value in mixture.state_dict().items())


@kinds
def test_empty_component_splits_the_largest_of_its_own_cell(kind: Covariance) -> None:
    mixture = make_mixture([0, 1, 1, 1], kind)
    loc, covariance = mixture.component_loc.clone(), mixture.covariance()
    assert reseed(mixture, torch.tensor([90.0, 3.0, 0.01, 7.0]), 1e-3)[0] == [2]
    pair = mixture.component_loc[[2, 3]]
    torch.testing.assert_close(pair.mean(0), loc[3])
    torch.testing.assert_close(mixture.component_loc[:2], loc[:2], rtol=0, atol=0)
    half = (pair[0] - pair[1]) / 2
    widest = torch.linalg.eigvalsh(covariance[3])[-1]
    torch.testing.assert_close(covariance[3] @ half, widest * half)
    torch.testing.assert_close(half.norm(), 0.5 * widest.sqrt())
    torch.testing.assert_close(mixture.covariance()[:2], covariance[:2])
    for one in (2, 3):
        together = mixture.covariance()[one] + torch.outer(half, half)
        torch.testing.assert_close(together, covariance[3], msg="the pair has the covariance of the one that was split")
    torch.testing.assert_close(mixture.component_log_share.exp(), torch.tensor([1.0, 0.3, 0.35, 0.35]))


@kinds
def test_empty_cell_splits_the_largest_of_all(kind: Covariance) -> None:
    mixture = make_mixture([0, 1, 1, 2, 2], kind)
    loc, covariance = mixture.component_loc.clone(), mixture.covariance()
    assert reseed(mixture, torch.tensor([40.0, 0.0, 0.0, 50.0, 10.0]), 1e-3)[0] == [1, 2]
    shift = mixture.component_loc[[1, 2]].mean(0) - loc[3]
    assert shift.norm() > 0.4
    torch.testing.assert_close(mixture.component_loc[3], loc[3] - shift)
    torch.testing.assert_close(mixture.covariance()[3], covariance[3] - torch.outer(shift, shift))
    torch.testing.assert_close(mixture.component_loc[4], loc[4], rtol=0, atol=0)
    torch.testing.assert_close(cell_shares(mixture), torch.ones(3))
    torch.testing.assert_close(mixture.component_log_share[3:].exp(), torch.tensor([25.0, 10.0]) / 35)


def test_many_empty_cells_all_get_a_place_of_their_own() -> None:
    mixture = make_mixture(list(range(8)), "full")
    mixture.component_loc[:] = mixture.component_loc[0]
    mixture.component_scale[:] = mixture.component_scale[0]
    assert reseed(mixture, torch.tensor([0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]), 1e-3)[0] == [0, 1, 2, 4, 5, 6, 7]
    distance = torch.cdist(mixture.component_loc, mixture.component_loc) + torch.eye(8)
    assert distance.min() > 0.05


@settings(max_examples=40)
@given(cell=st.sampled_from(list(MAPS.values())), kind=st.sampled_from(KINDS), data=st.data())
def test_reseeding_leaves_a_mixture(cell: list[int], kind: Covariance, data: st.DataObject) -> None:
    mixture, n = make_mixture(cell, kind), len(cell)
    counts = data.draw(st.lists(st.sampled_from([0.0, 1e-9, 0.05, 1.0, 30.0, 400.0]), min_size=n, max_size=n))
    threshold = 0.01 / n
    empty = [k for k in range(n) if counts[k] < threshold * sum(counts)]
    before = mixture.component_loc.clone()
    assert reseed(mixture, torch.tensor(counts), threshold)[0] == empty
    torch.testing.assert_close(cell_shares(mixture), torch.ones(3))
    assert mixture.component_cell.tolist() == cell
    assert torch.equal((mixture.component_loc != before).any(-1)[empty], torch.ones(len(empty), dtype=torch.bool))
    assert mixture.component_loc.unique(dim=0).shape == before.shape
    assert mixture.component_log_share.isfinite().all()
    again = GaussianMixture(3, 2, kind)
    again.load_state_dict(mixture.state_dict())
    torch.testing.assert_close(again.cell_log_share, mixture.cell_log_share)


@pytest.mark.float32
@kinds
def test_reseeding_keeps_single_precision(kind: Covariance) -> None:
    mixture = make_mixture([0, 1, 1], kind)
    assert reseed(mixture, torch.tensor([5.0, 0.0, 5.0]), 1e-3)[0] == [1]
    names = ("loc", "scale", "log_share")
    assert {getattr(mixture, f"component_{name}").dtype for name in names} == {torch.float32}
