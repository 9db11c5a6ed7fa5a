"""Renumbering the cells of a model: every density of a cell goes with it, whatever the decoder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from small_model import make_batch, make_model

from causalpima.inference.objectives.responsibilities import log_likelihood
from causalpima.models.batch import Modality, Standardisation
from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.decoders.likelihoods import CategoricalLikelihood, LikelihoodDecoder
from causalpima.models.decoders.networks import convolutional_decoder, mlp_decoder, mlp_network
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.laws import load_law

PERMUTATION = torch.tensor([3, 0, 5, 1, 2, 4])
C = len(PERMUTATION)
LAW = Modality("curve", torch.Size([5]), positions=torch.linspace(0.0, 1.0, 5), standardisation=Standardisation())


def variance() -> DecoderVariance:
    return DecoderVariance("fixed", 0.5)


DECODERS: dict[str, Callable[[], Decoder]] = {
    "mlp": lambda: mlp_decoder(2, (3, 2), (5,), variance(), C),
    "convolutional": lambda: convolutional_decoder(2, (8, 8, 2), (4, 3, 2), variance(), C),
    "categorical": lambda: LikelihoodDecoder(*mlp_network(2, (4,), (5,), C, 3), (4,), CategoricalLikelihood(3), C),
    "law per cell": lambda: PhysicsDecoder(load_law("linear"), LAW, C, variance(), 2),
    "law, both": lambda: PhysicsDecoder(load_law("linear"), LAW, C, variance(), 2, "both"),
    "law of the latent": lambda: PhysicsDecoder(load_law("linear"), LAW, C, variance(), 2, "latent"),
    "on Z alone": lambda: mlp_decoder(2, (3, 2), (5,), variance()),
}


@pytest.mark.parametrize("name", DECODERS)
def test_what_belonged_to_a_cell_belongs_to_its_new_number(name: str) -> None:
    decoder = DECODERS[name]()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    latent, cells = torch.randn(4, 2), torch.arange(C).unsqueeze(1)
    before = decoder(latent, cells).mean
    decoder.relabel(PERMUTATION)
    after = decoder(latent, PERMUTATION.unsqueeze(1)).mean
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    if decoder.depends_on_cell:
        assert not torch.equal(decoder(latent, cells).mean, before), "the cells differ"


def test_a_decoder_of_cells_that_does_not_say_how_is_refused() -> None:
    class Mine(Decoder):
        depends_on_cell = True

        def forward(self, latent: torch.Tensor, cell: torch.Tensor) -> None:
            """Nothing."""

    with pytest.raises(ValueError, match=r"^Mine: expected a method relabel"):
        Mine().relabel(PERMUTATION)


@pytest.mark.parametrize("several", [True, False])
def test_densities_of_all_cells_move_with_them(several: bool) -> None:
    model, batch, latent = make_model(several=several), make_batch(), torch.randn(5, 2)

    def per_cell() -> torch.Tensor:
        share = model.mixture.component_log_share
        density = model.mixture.logsumexp_to_cells(share + model.mixture.log_density(latent))
        return density + log_likelihood(model, "curve", latent, batch)

    before = per_cell()
    model.relabel(PERMUTATION)
    torch.testing.assert_close(per_cell()[:, PERMUTATION], before)
    assert not torch.allclose(per_cell(), before)
