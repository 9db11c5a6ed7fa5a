"""p(Z | N) with a block of Z per node: against one dense Gaussian per cell; renumbered, saved and loaded."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from causalpima.models.batch import Batch
from causalpima.models.block_mixture import NodeMixture
from causalpima.models.mixture import Covariance, GaussianMixture

OUTCOMES, LATENT = (2, 3, 2), 2
J, C = LATENT * len(OUTCOMES), 12
KINDS: list[Covariance] = ["diagonal", "full"]


def node_mixture(kind: Covariance = "full", outcomes: tuple[int, ...] = OUTCOMES) -> NodeMixture:
    """Random means and scales of every block."""
    mixture = NodeMixture(outcomes, LATENT, kind)
    for name in mixture.visible:
        block = mixture.block(name)
        n, scale = block.n_cells, 0.5 + torch.rand(block.n_cells, LATENT)
        tril = torch.diag_embed(scale) + torch.randn(n, LATENT, LATENT).tril(-1)
        parts = torch.randn(n, LATENT), scale if kind == "diagonal" else tril
        block.replace(*parts, torch.arange(n), torch.zeros(n))
    return mixture


def by_hand(mixture: NodeMixture, value: Tensor) -> Tensor:
    """log p(z | c), one cell and one node after the other, `[n, C]`."""
    columns = []
    for cell in itertools.product(*map(range, OUTCOMES)):
        total = torch.zeros(len(value))
        for node, (name, outcome) in enumerate(zip(mixture.visible, cell, strict=True)):
            block = mixture.block(name)
            normal = MultivariateNormal(block.component_loc[outcome], block.covariance()[outcome])
            total = total + normal.log_prob(value[:, node * LATENT : (node + 1) * LATENT])
        columns.append(total)
    return torch.stack(columns, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_density_is_a_product_over_nodes_and_that_of_the_dense_mixture(kind: Covariance) -> None:
    mixture, value = node_mixture(kind), torch.randn(7, J)
    expected = by_hand(mixture, value)
    torch.testing.assert_close(mixture.log_density(value), expected)
    dense = GaussianMixture(C, J, kind)
    dense.replace(mixture.component_loc, mixture.component_scale, torch.arange(C), torch.zeros(C))
    torch.testing.assert_close(dense.log_density(value), expected)
    torch.testing.assert_close(dense.covariance(), mixture.covariance())
    assert (mixture.n_cells, mixture.n_components, mixture.latent_dim) == (C, C, J)


def test_every_modality_depends_on_all_of_z_and_n() -> None:
    mixture, value, cells, r = node_mixture(), torch.randn(4, J), torch.arange(C), torch.rand(3, C)
    batch = Batch.whole({"image": torch.zeros(4, 1)}, {"image": torch.tensor([True, False, True, True])})
    assert mixture.part("image", value) is value
    assert mixture.level("image", cells) is cells
    assert mixture.n_levels("image") == C
    assert mixture.sum_to_levels("image", r) is r
    assert mixture.level_permutation("image", cells) is cells
    assert mixture.present(batch) is None
    assert mixture.complete(value, cells[:4], value, None) is value


def test_blocks_are_read_as_what_they_are_of() -> None:
    mixture, value, r = node_mixture(), torch.randn(4, J), torch.rand(5, C)
    assert torch.equal(torch.cat([mixture.block_part(name, value) for name in mixture.visible], -1), value)
    assert mixture.block_levels("block_2").tolist() == [0, 0, 1, 1, 2, 2] * 2
    torch.testing.assert_close(mixture.sum_to_block_levels("block_2", r), r.reshape(5, 2, 3, 2).sum((1, 3)))
    assert mixture.block_given("block_2", {"image": torch.zeros(4, dtype=torch.bool)}) is None


def exchanged() -> Tensor:
    """First and last node change places, and the outcomes of the second one are renamed."""
    cells = list(itertools.product(*map(range, OUTCOMES)))
    return torch.tensor([cells.index((c, (b + 1) % 3, a)) for a, b, c in cells])


@pytest.mark.parametrize("permutation", [exchanged(), torch.randperm(C, generator=torch.Generator().manual_seed(0))])
def test_other_numbers_keep_the_gaussians_and_are_saved(permutation: Tensor) -> None:
    mixture, value = node_mixture(), torch.randn(7, J)
    before, parameters = mixture.log_density(value), mixture.block("block_1").component_loc.clone()
    mixture.relabel(permutation)
    assert torch.equal(mixture.log_density(value)[:, permutation], before)
    assert torch.equal(mixture.block("block_1").component_loc, parameters)
    other = NodeMixture(OUTCOMES, LATENT, "full")
    other.load_state_dict(mixture.state_dict())
    assert torch.equal(other.log_density(value), mixture.log_density(value))


def test_an_exchange_of_nodes_leaves_every_block_with_a_node() -> None:
    mixture = node_mixture()
    mixture.relabel(exchanged())
    cells = torch.cartesian_prod(*map(torch.arange, OUTCOMES))
    for name, node in zip(mixture.visible, (2, 1, 0), strict=True):
        pairs = torch.unique(torch.stack([mixture.block_levels(name), cells[:, node]]), dim=1)
        assert pairs.shape[1] == OUTCOMES[node], "levels of the block are outcomes of the node"
