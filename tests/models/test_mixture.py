"""The mixture on Z: one or several Gaussians per cell, arranged by cell, replaced, saved and loaded."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from causalpima.models.mixture import Covariance, GaussianMixture

KINDS: list[Covariance] = ["diagonal", "full"]


def random_mixture(cell: list[int], latent_dim: int = 2, kind: Covariance = "diagonal") -> GaussianMixture:
    """A mixture with this map from components to cells and random components and shares."""
    n, cells = len(cell), torch.tensor(cell)
    loc, scale, logits = torch.randn(n, latent_dim), 0.4 + torch.rand(n, latent_dim), torch.randn(n)
    if kind == "full":
        scale = torch.diag_embed(scale) + torch.tril(torch.randn(n, latent_dim, latent_dim), -1)
    log_share = torch.empty(n)
    for c in set(cell):
        log_share[cells == c] = torch.log_softmax(logits[cells == c], 0)
    mixture = GaussianMixture(len(set(cell)), latent_dim, kind)
    mixture.replace(loc, scale, cells, log_share)
    return mixture


def cell_density(mixture: GaussianMixture, cell: int) -> MixtureSameFamily:
    """p(Z | N = cell) as torch has it."""
    rows = mixture.component_cell == cell
    normal = MultivariateNormal(mixture.component_loc[rows], covariance_matrix=mixture.covariance()[rows])
    return MixtureSameFamily(Categorical(logits=mixture.component_log_share[rows]), normal)


MAPS = {"one each": [0, 1, 2], "permuted": [2, 0, 1], "several": [2, 0, 0, 1, 2, 2], "not in order": [1, 0, 1, 2]}


@pytest.mark.parametrize("kind", KINDS)
def test_starts_with_one_unit_gaussian_per_cell(kind: Covariance) -> None:
    mixture = GaussianMixture(5, 3, kind)
    assert mixture.n_components == 5
    assert mixture.component_cell.tolist() == list(range(5))
    torch.testing.assert_close(mixture.covariance(), torch.eye(3).expand(5, 3, 3))
    assert mixture.component_loc.unique(dim=0).shape[0] == 5, "identical means are a fixed point of the updates"
    assert not list(mixture.parameters()), "closed-form updates set it, not gradients"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", MAPS.values(), ids=MAPS.keys())
def test_density_of_a_cell_is_the_mixture_of_torch(cell: list[int], kind: Covariance) -> None:
    mixture, value = random_mixture(cell, 2, kind), torch.randn(7, 2)
    per_component = mixture.log_density(value) + mixture.component_log_share
    expected = torch.stack([cell_density(mixture, c).log_prob(value) for c in range(3)], dim=-1)
    torch.testing.assert_close(mixture.logsumexp_to_cells(per_component), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", MAPS.values(), ids=MAPS.keys())
def test_component_by_index_is_the_gaussian_in_place(cell: list[int], kind: Covariance) -> None:
    mixture, value = random_mixture(cell, 2, kind), torch.randn(7, 2)
    index = torch.arange(len(cell)).unsqueeze(-1)
    log_prob = mixture.component(index).log_prob(value)
    assert log_prob.shape == (len(cell), 7)
    torch.testing.assert_close(log_prob.T, mixture.log_density(value))


@given(st.lists(st.integers(0, 3), min_size=0, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_any_map_from_components_to_cells(extra: list[int], random: object) -> None:
    cell = [0, 1, 2, 3, *extra]
    random.shuffle(cell)  # type: ignore[attr-defined]
    mixture, value = random_mixture(cell), torch.randn(5, len(cell))
    by_loop = torch.stack([torch.logsumexp(value[:, mixture.component_cell == c], -1) for c in range(4)], -1)
    torch.testing.assert_close(mixture.logsumexp_to_cells(value), by_loop)
    summed = torch.stack([value[:, mixture.component_cell == c].sum(-1) for c in range(4)], -1)
    torch.testing.assert_close(mixture.sum_to_cells(value), summed)


def test_weights_of_components_sum_to_those_of_cells() -> None:
    mixture = random_mixture([2, 0, 0, 1, 3, 5, 4, 2])
    log_joint = torch.log_softmax(torch.randn(6), 0).reshape(2, 3)
    weight = mixture.log_weight(log_joint)
    torch.testing.assert_close(weight.logsumexp(0), torch.zeros(()))
    torch.testing.assert_close(mixture.logsumexp_to_cells(weight), log_joint.flatten())


def test_expected_log_density_leaves_dimensions_of_components_last() -> None:
    mixture = random_mixture([1, 0, 1])
    q_loc, q_scale = torch.randn(4, 2), torch.rand(4, 2) + 0.1
    expected = mixture.expected_log_density(q_loc, q_scale)
    assert expected.shape == (4, 3)
    near_point = mixture.expected_log_density(q_loc, torch.full_like(q_scale, 1e-9))
    torch.testing.assert_close(near_point, mixture.log_density(q_loc))


def by_cell_posterior(mixture: GaussianMixture, value: Tensor) -> Tensor:
    """q(component | cell) over the padded places, as the model draws it."""
    log_density = mixture.log_density(value)[:, mixture.cell_components]
    return torch.softmax(log_density + mixture.cell_log_share, dim=-1)


@pytest.mark.parametrize("far", [1e1, 1e3, 1e6], ids=["near", "far", "log density -1e12"])
def test_padding_gets_nothing_from_far_away_components(far: float) -> None:
    mixture = random_mixture([0, 0, 0, 1, 2, 2])
    mixture.component_loc[3] = far
    value = torch.randn(4, 2)
    is_pad = torch.tensor([[False] * 3, [False, True, True], [False, False, True]])
    assert (by_cell_posterior(mixture, value)[:, is_pad] == 0).all()
    spread = mixture.spread_over_cells(mixture.log_density(value))
    assert (torch.softmax(spread, -1)[:, is_pad] == 0).all()
    torch.testing.assert_close(spread[:, 1, 0], mixture.log_density(value)[:, 3], rtol=0, atol=0)
    exact = torch.stack(
        [torch.logsumexp(mixture.log_density(value)[:, mixture.component_cell == c], -1) for c in range(3)]
    )
    torch.testing.assert_close(mixture.logsumexp_to_cells(mixture.log_density(value)), exact.T, rtol=1e-14, atol=0)


@pytest.mark.parametrize("log_share", [-2e4, -torch.inf])
def test_padding_gets_nothing_where_the_first_component_of_a_cell_has_no_share(log_share: float) -> None:
    mixture = random_mixture([0, 0, 0, 1, 1])
    share = mixture.component_log_share.clone()
    share[3:] = torch.tensor([log_share, 0.0])
    loc = mixture.component_loc.clone()
    loc[3:] = torch.tensor([[0.0, 0.0], [2e3, 0.0]])
    mixture.replace(loc, mixture.component_scale, mixture.component_cell, share)
    value = torch.zeros(1, 2)
    places = mixture.log_density(value)[:, mixture.cell_components] + mixture.cell_log_share
    exact = torch.logsumexp(mixture.log_density(value)[:, 3:] + share[3:], -1)
    torch.testing.assert_close(torch.logsumexp(places[:, 1], -1), exact, rtol=1e-14, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_state_goes_to_a_mixture_with_another_number_of_components(kind: Covariance) -> None:
    mixture, other = random_mixture([1, 0, 2, 1, 1], 3, kind), GaussianMixture(3, 3, kind)
    state = mixture.state_dict()
    assert set(state) == {f"component_{name}" for name in ("loc", "scale", "cell", "log_share")}
    other.load_state_dict(state)
    value = torch.randn(4, 3)
    assert other.n_components == 5
    assert torch.equal(other.cell_components, mixture.cell_components)
    assert torch.equal(other.log_density(value), mixture.log_density(value))
    mixture.component_loc.zero_()
    assert other.component_loc.abs().min() > 0, "a copy, not a view"


def test_state_takes_the_precision_of_the_mixture_that_loads_it() -> None:
    mixture, other = random_mixture([1, 0, 1]).float(), GaussianMixture(2, 2)
    other.load_state_dict(mixture.state_dict())
    assert other.component_loc.dtype == other.cell_log_share.dtype == torch.float64
    assert other.component_cell.dtype == torch.long


def test_a_state_without_the_mixture_is_reported_as_torch_does() -> None:
    with pytest.raises(RuntimeError, match=r"Missing key.*component_loc"):
        GaussianMixture(2, 2).load_state_dict({})


@pytest.mark.parametrize("cell", [[0, 0, 1], [0, 1, 3], [0, 1, 2, 3]])
def test_a_cell_without_a_component_is_refused(cell: list[int]) -> None:
    mixture, n = GaussianMixture(3, 2), len(cell)
    with pytest.raises(ValueError, match="cell: expected a component for each of 3 cells, got"):
        mixture.replace(torch.randn(n, 2), torch.ones(n, 2), torch.tensor(cell), torch.zeros(n))
    assert mixture.n_components == 3, "nothing was replaced"


def test_components_of_another_shape_are_refused() -> None:
    mixture, cell = GaussianMixture(2, 3, "full"), torch.arange(2)
    with pytest.raises(ValueError, match=r"scale: expected shape \(2, 3, 3\) for 2 components with full covariance"):
        mixture.replace(torch.randn(2, 3), torch.ones(2, 3), cell, torch.zeros(2))
    with pytest.raises(ValueError, match=r"loc: expected shape \(2, 3\)"):
        mixture.replace(torch.randn(2, 2), torch.eye(3).expand(2, 3, 3), cell, torch.zeros(2))


def test_conversion_takes_all_tensors_along() -> None:
    mixture = random_mixture([1, 0, 1]).float()
    assert mixture.log_density(torch.randn(4, 2, dtype=torch.float32)).dtype == torch.float32
    assert mixture.cell_log_share.dtype == torch.float32
