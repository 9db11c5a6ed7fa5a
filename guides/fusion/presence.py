"""Which samples have which modality, as fusions ask for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from guides.encoders.base import GaussianParameters

__all__ = ["any_present", "keep", "keep_rows", "refuse_empty"]


def keep(expert: GaussianParameters, mask: Tensor | None) -> GaussianParameters:
    """The expert where it is present, bool `[*batch]` or None for everywhere; else N(0, 1), which gets no gradient."""
    return expert if mask is None else GaussianParameters(*(keep_rows(part, mask, 0.0) for part in expert))


def keep_rows(value: Tensor, mask: Tensor | None, filler: float) -> Tensor:
    """The rows `[*batch, J]` of samples that have a modality, bool `[*batch]` or None for all; else a filler."""
    return value if mask is None else torch.where(mask.unsqueeze(-1), value, filler)


def any_present(present: Sequence[Tensor | None], like: Tensor) -> Tensor:
    """Which samples have a modality, bool `[*batch]`.

    Args:
        present: Per modality, bool `[*batch]`, or None where all samples have it.
        like: `[*batch, J]`.
    """
    masks = [mask for mask in present if mask is not None]
    if len(masks) < len(present) or not masks:
        return torch.ones_like(like[..., 0], dtype=torch.bool)
    return torch.stack(masks).any(0)


def refuse_empty(name: str, present: Sequence[Tensor | None]) -> None:
    """Refuse samples without any modality.

    Args:
        name: What fuses them.
        present: As for `any_present`.

    Raises:
        ValueError: There are such.
    """
    masks = [mask for mask in present if mask is not None]
    if not masks or len(masks) < len(present):
        return
    absent = ~torch.stack(masks).any(0)
    if bool(absent.any()):
        raise ValueError(
            f"{name}: expected at least one modality per sample, got none for {int(absent.sum())} samples; "
            "leave them out or use the prior expert"
        )
