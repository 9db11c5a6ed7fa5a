"""Encoders q(Z | X_m)."""

from guides.encoders.base import Encoder, GaussianParameters
from guides.encoders.inputs import ElementFeatures, EncoderInput
from guides.encoders.networks import convolutional_encoder, curve_encoder, mlp_encoder

__all__ = [
    "ElementFeatures",
    "Encoder",
    "EncoderInput",
    "GaussianParameters",
    "convolutional_encoder",
    "curve_encoder",
    "mlp_encoder",
]
