"""Names of the files of figures, from names of modalities that may hold anything."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import product

__all__ = ["file_names", "outcome_files"]

_MOST_CHARACTERS = 40


def file_names(modalities: Iterable[str]) -> dict[str, str]:
    """A part of a file name for every modality: its name where that is a plain word, else made from it.

    Letters lose their accents and other characters become `_`. Where nothing is left, or two names would differ in
    nothing but case, which some file systems do not tell apart, the number of the modality comes first.

    >>> list(file_names(["image", "yield strength (MPa)", "Härte", "µ-CT", "CT", "応力"]).values())
    ['image', 'yield_strength_MPa', 'Harte', '3_CT', '4_CT', '5']
    """
    slugs = {name: _slug(name) for name in modalities}
    count = Counter(slug.lower() for slug in slugs.values())
    taken = {slug.lower() for slug in slugs.values() if slug and count[slug.lower()] == 1}
    return {
        name: slug if slug.lower() in taken else _numbered(index, slug, taken)
        for index, (name, slug) in enumerate(slugs.items())
    }


def outcome_files(nodes: Iterable[str], modalities: Iterable[str]) -> dict[tuple[str, str], str]:
    """A part of a file name for every pair of a node and a modality.

    >>> outcome_files(["hue"], ["image", "yield strength"])
    {('hue', 'image'): 'hue_image', ('hue', 'yield strength'): 'hue_yield_strength'}
    """
    pairs = list(product(nodes, modalities))
    return dict(zip(pairs, file_names(map("\x1f".join, pairs)).values(), strict=True))


def _slug(name: str) -> str:
    if name.isascii() and name.replace("_", "").isalnum() and len(name) <= _MOST_CHARACTERS:
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    return re.sub("[^A-Za-z0-9]+", "_", plain).strip("_")[:_MOST_CHARACTERS]


def _numbered(index: int, slug: str, taken: set[str]) -> str:
    """The number, and an underscore more as long as another modality bears that very name."""
    name = f"{index}_{slug}" if slug else str(index)
    while name.lower() in taken:
        name += "_"
    return name
