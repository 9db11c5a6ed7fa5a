"""p(Z | N) in blocks: against one dense Gaussian per cell, with blocks absent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_mixture import LATENT, OUTCOMES, PRESENT, VISIBLE, N, make_batch, make_mixture
from torch import Tensor
from torch.distributions import MultivariateNormal

from causalpima.models import gaussian
from causalpima.models.block_mixture import BlockMixture
from causalpima.models.mixture import Covariance, GaussianMixture

KINDS: list[Covariance] = ["diagonal", "full"]
J = LATENT * len(VISIBLE)


def by_hand(mixture: BlockMixture, value: Tensor, present: dict[str, Tensor]) -> Tensor:
    """log p(z | c), one cell and one modality after the other, `[N, C]`."""
    columns = []
    for cell in torch.cartesian_prod(*map(torch.arange, OUTCOMES)):
        total = torch.zeros(len(value))
        for row, (name, nodes) in enumerate(VISIBLE.items()):
            level = 0
            for node in nodes:
                level = level * OUTCOMES[node] + int(cell[node])
            block = mixture.block(name)
            scale = block.component_scale[level]
            tril = torch.diag(scale) if scale.dim() == 1 else scale
            q = MultivariateNormal(block.component_loc[level], scale_tril=tril)
            total += torch.where(present[name], q.log_prob(value[:, row * LATENT : (row + 1) * LATENT]), 0.0)
        columns.append(total)
    return torch.stack(columns, -1)


def presence() -> dict[str, Tensor]:
    return {name: torch.ones(N, dtype=torch.bool) if mask is None else mask for name, mask in PRESENT.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("complete", [True, False])
def test_log_density_leaves_absent_blocks_out(kind: Covariance, complete: bool) -> None:
    torch.manual_seed(0)
    mixture, value, batch = make_mixture(kind), torch.randn(N, J), make_batch(complete)
    present = mixture.present(batch)
    assert (present is None) == complete
    rows = {name: torch.ones(N, dtype=torch.bool) for name in VISIBLE} if complete else presence()
    expected = by_hand(mixture, value, rows)
    torch.testing.assert_close(mixture.log_density(value, present), expected)
    mask = None if present is None else present.unsqueeze(-2)
    dense = gaussian.log_density(value.unsqueeze(-2), mixture.component_loc, mixture.component_scale, mask)
    torch.testing.assert_close(dense, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_mixture_of_dense_gaussians(kind: Covariance) -> None:
    torch.manual_seed(0)
    mixture, value = make_mixture(kind), torch.randn(N, J)
    dense = MultivariateNormal(mixture.component_loc, mixture.covariance())
    torch.testing.assert_close(mixture.log_density(value), dense.log_prob(value.unsqueeze(1)))
    torch.testing.assert_close(
        mixture.component(torch.arange(12)).log_prob(value.unsqueeze(1)), dense.log_prob(value.unsqueeze(1))
    )
    assert (mixture.n_cells, mixture.n_components, mixture.latent_dim) == (12, 12, J)
    assert mixture.component_cell.tolist() == list(range(12))
    assert mixture.component_log_share.tolist() == [0.0] * 12
    assert mixture.cell_components.tolist() == [[cell] for cell in range(12)]


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=25)
def test_expected_log_density_of_the_dimensions_that_are_present_is_that_of_their_marginal(
    seed: int, full: bool
) -> None:
    """Against the marginal Gaussian of the chosen blocks, made by leaving rows and columns out."""
    torch.manual_seed(seed)
    mixture = make_mixture("full" if full else "diagonal")
    q_loc, q_scale = torch.randn(J), 0.2 + torch.rand(J)
    keep = torch.rand(3) < 0.5
    present = keep.repeat_interleave(LATENT)
    found = gaussian.expected_log_density(q_loc, q_scale, mixture.component_loc, mixture.component_scale, present)
    loc, covariance = mixture.component_loc[:, present], mixture.covariance()[:, present][:, :, present]
    if not bool(present.any()):
        assert found.tolist() == [0.0] * 12
        return
    tril = torch.linalg.cholesky(covariance)
    torch.testing.assert_close(found, gaussian.expected_log_density(q_loc[present], q_scale[present], loc, tril))
    torch.testing.assert_close(gaussian.entropy(q_scale, present), gaussian.entropy(q_scale[present]))


def test_parts_and_levels_of_a_modality() -> None:
    mixture = make_mixture()
    value, cells = torch.randn(4, J), torch.arange(12)
    assert torch.equal(torch.cat([mixture.part(name, value) for name in VISIBLE], -1), value)
    # 2 x 3 x 2 cells, the curve sees the last two nodes.
    assert mixture.level("curve", cells).tolist() == [0, 1, 2, 3, 4, 5] * 2
    assert mixture.n_levels("curve") == 6
    r = torch.rand(5, 12)
    expected = r.reshape(5, 2, 6).sum(1)
    torch.testing.assert_close(mixture.sum_to_levels("curve", r), expected)


def test_absent_blocks_are_completed_given_the_cell() -> None:
    torch.manual_seed(0)
    mixture, batch = make_mixture(), make_batch()
    present = mixture.present(batch)
    assert present is not None
    value, cell, noise = torch.randn(N, J), torch.tensor([0, 3, 5, 7, 11, 2]), torch.randn(N, J)
    found = mixture.complete(value, cell, noise, present)
    drawn = mixture.component_loc[cell] + (mixture.component_scale[cell] @ noise.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(found, torch.where(present, value, drawn))
    assert mixture.complete(value, cell, noise, None) is value


def test_moments_of_absent_blocks_are_those_of_a_large_sample() -> None:
    torch.manual_seed(0)
    mixture, present = make_mixture(), torch.zeros(1, J, dtype=torch.bool)
    r = torch.softmax(2 * torch.randn(1, 12), -1)
    loc, scale = mixture.complete_moments(r, torch.zeros(1, J), torch.ones(1, J), present)
    n = 200_000
    cell = torch.multinomial(r[0], n, replacement=True)
    drawn = mixture.complete(torch.zeros(n, J), cell, torch.randn(n, J), present)
    assert (((drawn.mean(0) - loc[0]) / scale[0]).abs() < 5 / n**0.5).all()
    error = (drawn - loc[0]).square().std(0) / n**0.5
    assert ((drawn - loc[0]).square().mean(0) - scale[0].square()).abs().lt(5 * error).all()


def test_weights_come_back() -> None:
    torch.manual_seed(0)
    mixture = make_mixture()
    other = BlockMixture(OUTCOMES, VISIBLE, LATENT, "full")
    other.load_state_dict(mixture.state_dict())
    value = torch.randn(N, J)
    assert torch.equal(mixture.log_density(value), other.log_density(value))


def permuted(rename: Callable[[int, int, int], tuple[int, int, int]]) -> Tensor:
    cells = [rename(*map(int, cell)) for cell in torch.cartesian_prod(*map(torch.arange, OUTCOMES))]
    return torch.tensor([a * 6 + b * 2 + c for a, b, c in cells])


@pytest.mark.parametrize(
    "rename", [lambda a, b, c: (1 - a, b, c), lambda a, b, c: (a, (b + 1) % 3, 1 - c)], ids=["one", "two"]
)
def test_outcomes_can_be_renamed(rename: Callable[[int, int, int], tuple[int, int, int]]) -> None:
    torch.manual_seed(0)
    mixture, value, permutation = make_mixture(), torch.randn(N, J), permuted(rename)
    before = mixture.log_density(value)
    mixture.relabel(permutation)
    torch.testing.assert_close(mixture.log_density(value)[:, permutation], before)


def test_cells_cannot_be_renamed_against_the_mask() -> None:
    """Outcomes of the first node flipped in half of the cells alone: the image would see the last node."""
    permutation = permuted(lambda a, b, c: (a ^ c, b, c))
    mixture = make_mixture()
    before = mixture.component_loc
    with pytest.raises(ValueError, match=r"^permutation: expected one that keeps the mask, got .* image cannot tell"):
        mixture.relabel(permutation)
    assert torch.equal(mixture.component_loc, before)


def test_one_mixture_for_all_of_z_has_the_same_interface() -> None:
    mixture, batch = GaussianMixture(12, J), make_batch()
    value, r = torch.randn(N, J), torch.rand(N, 12)
    assert mixture.present(batch) is None
    assert mixture.part("image", value) is value
    assert mixture.level("image", torch.tensor(3)) == 3
    assert mixture.n_levels("image") == 12
    assert mixture.sum_to_levels("image", r) is r
    assert mixture.complete(value, torch.zeros(N), value, None) is value
    assert mixture.complete_moments(r, value, value, None) == (value, value)
