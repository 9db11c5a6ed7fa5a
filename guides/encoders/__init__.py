"""Encoders q(Z | X_m)."""

from guides.encoders.base import Encoder, GaussianParameters
from guides.encoders.inputs import ElementFeatures, EncoderInput, features_of
from guides.encoders.networks import convolutional_encoder, curve_encoder, mlp_encoder

__all__ = [
    "ElementFeatures",
    "Encoder",
    "EncoderInput",
    "GaussianParameters",
    "convolutional_encoder",
    "curve_encoder",
    "features_of",
    "mlp_encoder",
]
