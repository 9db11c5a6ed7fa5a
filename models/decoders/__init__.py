"""Decoders p(X_m | Z, N)."""

from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder, convolutional_decoder, mlp_decoder

__all__ = ["Decoder", "DecoderVariance", "GaussianDecoder", "convolutional_decoder", "mlp_decoder"]
