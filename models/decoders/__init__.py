"""Decoders p(X_m | Z, N)."""

from models.decoders.base import Decoder, DecoderVariance
from models.decoders.networks import GaussianDecoder, convolutional_decoder, mlp_decoder

__all__ = ["Decoder", "DecoderVariance", "GaussianDecoder", "convolutional_decoder", "mlp_decoder"]
