"""What of a file is read, and as what."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from inference.data.multimodal import ModalityKind

__all__ = ["ReadOptions"]

_NO_LISTS = ("sample_dim", "in_memory", "observational")


@dataclass(frozen=True)
class ReadOptions:
    """How variables become samples. A variable that is named here has the roles given here, not those of its file.

    Attributes:
        sample_dim: Dimension that counts the samples; default `sample` if there is one, else the first of the first
            variable.
        modalities: Variables to learn from; default all that have no other role.
        labels: Known factors, for evaluation only. Where some are named, they alone are scored against; those that
            only their file calls labels still take part in the split.
        groups: Specimens or batches whose samples stay on one side of every split.
        covariates: Nuisances (batch, instrument) that decoders see.
        environment: The variable that tells in which environment a sample was taken (one name at most).
        observational: Its level without intervention; default `observational`.
        kinds: Per modality `image`, `curve` or `vector`; default by attribute and shape.
        in_memory: `no` leaves modalities of a netCDF or zarr file on disk (unless they have one number per sample), and
            reads samples when they are needed; `auto` does so for files with more than 2 GiB of values.

    Raises:
        ValueError: A name that stands twice, or a modality with another role.
    """

    sample_dim: str | None = None
    modalities: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    observational: str | None = None
    kinds: Mapping[str, ModalityKind] = field(default_factory=dict)
    in_memory: Literal["auto", "yes", "no"] = "auto"

    def __post_init__(self) -> None:
        for part in ("modalities", "labels", "groups", "covariates", "environment"):
            object.__setattr__(self, part, _names(part, getattr(self, part)))
        object.__setattr__(self, "kinds", dict(self.kinds))
        object.__setattr__(self, "in_memory", _choice(self.in_memory))
        if len(self.environment) > 1:
            raise ValueError(f"environment: expected one variable, got {', '.join(self.environment)}; join them to one")
        both = set(self.modalities) & {*self.labels, *self.groups, *self.covariates, *self.environment}
        if both:
            raise ValueError(
                f"modalities: expected names without another role, got {', '.join(sorted(both))} also as label, "
                "group, covariate or environment; name each once"
            )

    @property
    def is_default(self) -> bool:
        """Whether nothing was asked for."""
        return self == ReadOptions()

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """The names in each list of variables, by the name of the list."""
        lists = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _NO_LISTS}
        return {name: tuple(names) for name, names in lists.items()}


def _choice(in_memory: Any) -> Any:
    """One of the choices; YAML reads `yes` and `no` as true and false."""
    choice = {True: "yes", False: "no"}.get(in_memory, in_memory) if isinstance(in_memory, bool) else in_memory
    if choice not in ("auto", "yes", "no"):
        raise ValueError(f"in_memory: expected one of auto, yes, no, got {in_memory!r}")
    return choice


def _names(part: str, names: object) -> tuple[str, ...]:
    words = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list | tuple) else None
    if words is None or not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"{part}: expected names of variables, for example ('a', 'b'), got {names!r}")
    double = next((word for word in words if words.count(word) > 1), None)
    if double is not None:
        raise ValueError(f"{part}: expected every name once, got {double!r} twice")
    return words
