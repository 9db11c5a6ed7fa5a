"""Decoders p(X_m | Z, N)."""

from models.decoders.base import Decoder
from models.decoders.gaussian import GaussianDecoder
from models.decoders.networks import convolutional_decoder, mlp_decoder
from models.decoders.variance import DecoderVariance

__all__ = ["Decoder", "DecoderVariance", "GaussianDecoder", "convolutional_decoder", "mlp_decoder"]
