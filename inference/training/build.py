"""Model and guide from a configuration and the shapes of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guides.encoders import Encoder, convolutional_encoder, curve_encoder, mlp_encoder
from guides.guide import Guide
from inference.objectives.responsibilities import cell_posterior
from inference.training.config import DecoderConfig, EncoderConfig, FitConfig
from models.causal_pima import CausalPIMA
from models.decoders import Decoder, DecoderVariance, convolutional_decoder, mlp_decoder
from models.graph import HodgeGraph
from models.mixture import GaussianMixture

__all__ = ["build"]

Shapes = Mapping[str, Sequence[int]]

_ENCODERS = {"mlp": mlp_encoder, "convolutional": convolutional_encoder, "curve": curve_encoder}
_DECODERS = {"mlp": mlp_decoder, "convolutional": convolutional_decoder}


def build(config: FitConfig, shapes: Shapes) -> tuple[CausalPIMA, Guide]:
    """The model and the guide that a configuration describes, initialised from torch's global generator.

    Args:
        config: The configuration, with an entry for every modality.
        shapes: Shape of one sample per modality.
    """
    graph = HodgeGraph(config.outcomes, config.graph.temperature_start, config.graph.edge_rate)
    mixture = GaussianMixture(graph.n_cells, config.model.latent_dim, config.model.covariance)
    decoders = {m: _decoder(config.modality[m].decoder, config, shapes[m], graph.n_cells) for m in shapes}
    model = CausalPIMA(graph, mixture, decoders, tuple(config.nodes))
    encoders = {m: _encoder(config.modality[m].encoder, shapes[m], config.model.latent_dim) for m in shapes}
    posterior = cell_posterior(config.objective, model)
    return model, Guide(encoders, config.guide.prior_expert, posterior, model.node_names)


def _encoder(config: EncoderConfig, shape: Sequence[int], latent_dim: int) -> Encoder:
    return _ENCODERS[config.kind](shape, config.sizes, latent_dim)


def _decoder(config: DecoderConfig, fit: FitConfig, shape: Sequence[int], n_cells: int) -> Decoder:
    variance = DecoderVariance(config.variance, config.variance_initial, config.variance_floor)
    heads = n_cells if config.per_cell else None
    return _DECODERS[config.kind](fit.model.latent_dim, shape, config.sizes, variance, heads)
