"""Which settings of one modality go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guides.encoders import ENCODERS
from models.decoders.bodies import NETWORKS
from models.decoders.network_names import is_network
from models.decoders.physics import LAWS
from models.user_code import names_user_code

if TYPE_CHECKING:
    from inference.training.config import DecoderConfig, ModalityConfig

__all__ = ["check_modality", "is_physics"]


def is_physics(decoder: DecoderConfig) -> bool:
    """Whether the decoder is a physics law."""
    return not is_network(decoder.kind)


def check_modality(name: str, config: ModalityConfig) -> None:
    """Refuse settings that contradict each other.

    Args:
        name: Beginning of the names in messages, for example `modality.image`.
        config: Settings of the modality.

    Raises:
        ValueError: An unknown kind of encoder or decoder, or settings that do not apply to it.
    """
    decoder, encoder = config.decoder, config.encoder.kind
    if encoder not in ENCODERS and not names_user_code(encoder):
        known = ", ".join(ENCODERS)
        raise ValueError(f"{name}.encoder.kind: expected one of {known}, or module:function, got {encoder!r}")
    if is_physics(decoder):
        _check_law(f"{name}.decoder", decoder)
    elif decoder.options or decoder.source != "cell":
        raise ValueError(
            f"{name}.decoder: expected options and source for a physics law alone, got them for {decoder.kind}; "
            "leave them out, or name a law as kind"
        )
    if decoder.likelihood not in ("normal", "student_t") and config.transform != "identity":
        raise ValueError(
            f"{name}.transform: expected identity for likelihood {decoder.likelihood}, which takes values as they are, "
            f"got {config.transform}"
        )


def _check_law(name: str, decoder: DecoderConfig) -> None:
    if decoder.kind not in LAWS and ":" not in decoder.kind:
        known = ", ".join([*NETWORKS, *LAWS])
        raise ValueError(f"{name}.kind: expected one of {known}, or module:Class, got {decoder.kind!r}")
    if decoder.likelihood != "normal":
        raise ValueError(
            f"{name}.likelihood: expected normal for a physics law, got {decoder.likelihood}; use it with a network"
        )
    if decoder.per_cell:
        raise ValueError(f"{name}.per_cell: expected false for a physics law, got true; source says what it depends on")
