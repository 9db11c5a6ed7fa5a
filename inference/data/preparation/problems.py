"""Why a sample lacks something, or is left out."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Absence", "Omission", "UnusableError"]


class UnusableError(Exception):
    """This measurement of this sample can't be used, the message says why; the others of the sample can."""


@dataclass(frozen=True)
class Absence:
    """A measurement that a sample lacks.

    Attributes:
        row: Row of the manifest, from 1, without the header.
        sample: Identifier of the sample.
        modality: Name of the variable.
        entry: What stands in the manifest; empty where nothing does.
        why: The reason.
    """

    row: int
    sample: str
    modality: str
    entry: str
    why: str


@dataclass(frozen=True)
class Omission:
    """A row of the manifest that is left out; the fields as of `Absence`."""

    row: int
    sample: str
    why: str
