"""With a block of Z per node bound and gradients are those of the dense mixture with the same Gaussians."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from causalpima.guides.encoders import mlp_encoder
from causalpima.guides.guide import Guide
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior
from causalpima.models.batch import Batch
from causalpima.models.block_mixture import NodeMixture
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import Covariance, GaussianMixture
from causalpima.models.program import CausalPIMA, CellSites

OUTCOMES, LATENT = (2, 3), 2
J, C = 4, 6
OBJECTIVES: list[ObjectiveName] = ["collapsed", "meanfield", "paper"]


def mixtures(kind: Covariance) -> tuple[NodeMixture, GaussianMixture]:
    """One in blocks, and the dense one of the same cells, a function of the blocks' tensors."""
    nodewise = NodeMixture(OUTCOMES, LATENT, kind)
    for name in nodewise.visible:
        block = nodewise.block(name)
        n, scale = block.n_cells, 0.5 + torch.rand(block.n_cells, LATENT)
        tril = torch.diag_embed(scale) + 0.5 * torch.randn(n, LATENT, LATENT).tril(-1)
        loc, scales = torch.randn(n, LATENT), scale if kind == "diagonal" else tril
        block.replace(loc.requires_grad_(), scales.requires_grad_(), torch.arange(n), torch.zeros(n))
    dense = GaussianMixture(C, J, kind)
    dense.replace(nodewise.component_loc, nodewise.component_scale, torch.arange(C), torch.zeros(C))
    return nodewise, dense


def bound(objective: ObjectiveName, mixture: GaussianMixture | NodeMixture, sites: CellSites) -> tuple[Tensor, Tensor]:
    """The bound, and its gradients for networks and graph."""
    torch.manual_seed(1)
    shapes = {"image": (5,), "curve": (4,)}
    decoders = {m: mlp_decoder(J, shape, (6,), DecoderVariance("learned", 0.5)) for m, shape in shapes.items()}
    graph = HodgeGraph(OUTCOMES, temperature=0.7)
    graph.conditional_logits.data = torch.randn_like(graph.conditional_logits)
    model = CausalPIMA(graph, mixture, decoders, sites=sites)
    encoders = {m: mlp_encoder(shape, (6,), J) for m, shape in shapes.items()}
    posterior = cell_posterior(objective, model)
    guide = Guide(encoders, cell_posterior=posterior, node_names=model.node_names, sites=sites)
    values = {m: torch.randn(7, *shape) for m, shape in shapes.items()}
    batch = Batch.whole(values, {"image": None, "curve": torch.tensor([1, 0, 1, 1, 0, 1, 1]).bool()})
    torch.manual_seed(2)
    value = make_elbo(objective).evaluate(model, guide, batch).elbo
    moved = [*encoders["image"].parameters(), *model.graph.parameters(), *decoders["curve"].parameters()]
    gradients = torch.autograd.grad(value, moved, allow_unused=True, retain_graph=True)
    return value, torch.cat([gradient.flatten() for gradient in gradients if gradient is not None])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("sites", ["cells", "nodes"])
def test_bound_and_gradients_are_those_of_the_dense_mixture(
    objective: ObjectiveName, kind: Covariance, sites: CellSites
) -> None:
    nodewise, dense = mixtures(kind)
    found, expected = bound(objective, nodewise, sites), bound(objective, dense, sites)
    torch.testing.assert_close(found, expected)
    leaves = [nodewise.block("block_2").component_loc, nodewise.block("block_1").component_scale]
    torch.testing.assert_close(torch.autograd.grad(found[0], leaves), torch.autograd.grad(expected[0], leaves))
