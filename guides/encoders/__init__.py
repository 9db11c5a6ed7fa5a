"""Encoders q(Z | X_m). A new kind is a file here and a line in `ENCODERS` (docs/components.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from guides.encoders.base import Encoder, GaussianParameters
from guides.encoders.inputs import ElementFeatures, EncoderInput, features_of
from guides.encoders.networks import convolutional_encoder, curve_encoder, mlp_encoder

__all__ = [
    "ENCODERS",
    "ElementFeatures",
    "Encoder",
    "EncoderInput",
    "GaussianParameters",
    "MakeEncoder",
    "convolutional_encoder",
    "curve_encoder",
    "features_of",
    "mlp_encoder",
]

MakeEncoder = Callable[..., Encoder]
"""Makes an encoder from the shape of a sample, the widths of its layers, the dimension of Z, whether it sees which
elements were measured, and how an element is shown (`ElementFeatures`)."""

ENCODERS: Mapping[str, MakeEncoder] = {
    "mlp": mlp_encoder,
    "convolutional": convolutional_encoder,
    "curve": curve_encoder,
}
"""By the name that `modality.NAME.encoder.kind` has."""
