"""Model and guide from a configuration and the shapes of the data."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_fits import settings

from inference.training.build import build
from inference.training.config import DecoderConfig, EncoderConfig, ModalityConfig
from models.batch import Batch
from models.modality import Modality

SHAPES: dict[str, tuple[int, ...]] = {"image": (8, 9, 3), "curve": (16,), "table": (5,)}
MODALITIES = {name: Modality(name, torch.Size(shape)) for name, shape in SHAPES.items()}
NETWORKS = {
    "image": ModalityConfig(EncoderConfig("convolutional", (4, 8)), DecoderConfig("convolutional", (8, 4, 4))),
    "curve": ModalityConfig(EncoderConfig("curve", (4, 8)), DecoderConfig("mlp", (8,))),
    "table": ModalityConfig(EncoderConfig("mlp", (8,)), DecoderConfig("mlp", (8,), per_cell=True)),
}


@pytest.mark.parametrize("latent_dim", [1, 3])
@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
def test_every_kind_of_network_fits_its_modality(objective: str, latent_dim: int) -> None:
    config = settings(objective=objective, nodes={"a": 2, "b": 3}, modality=NETWORKS, model__latent_dim=latent_dim)
    model, guide = build(config, MODALITIES)
    batch = Batch.whole({name: torch.randn(4, *shape) for name, shape in SHAPES.items()})
    posterior = guide.encode(batch)
    assert posterior.loc.shape == (4, latent_dim)
    cell = torch.arange(6).unsqueeze(-1)
    for name, decoder in model.decoders.items():
        drawn = decoder(posterior.loc, cell)
        assert drawn.event_shape == SHAPES[name]
        assert drawn.batch_shape == ((6, 4) if name == "table" else (4,))
    assert (guide.cell_posterior is None) == (objective == "collapsed")


def test_names_sizes_and_settings_arrive() -> None:
    config = settings(
        nodes={"type": 2, "response": 3},
        model__covariance="diagonal",
        guide__prior_expert=True,
        graph__temperature_start=0.7,
        graph__edge_rate=0.3,
        modality={
            "table": ModalityConfig(EncoderConfig(sizes=(7,)), DecoderConfig(variance="fixed", variance_initial=2.0))
        },
    )
    model, guide = build(config, {"table": MODALITIES["table"]})
    assert model.node_names == ("type", "response")
    assert (model.graph.outcomes, model.mixture.n_cells, model.mixture.covariance_kind) == ((2, 3), 6, "diagonal")
    assert float(model.graph.temperature) == pytest.approx(0.7)
    assert model.graph.edge_rate == 0.3
    assert guide.prior_expert
    decoder: Any = model.decoders["table"]
    assert float(decoder.variance.training_variance()) == 2.0
    assert {tuple(p.shape) for p in guide.parameters()} >= {(7, 5), (7,)}


def test_the_generator_alone_decides_the_start() -> None:
    def parameters(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        model, guide = build(settings(modality=NETWORKS), MODALITIES)
        return torch.cat([p.detach().reshape(-1) for p in (*model.parameters(), *guide.parameters())])

    assert torch.equal(parameters(3), parameters(3))
    assert not torch.equal(parameters(3), parameters(4))
