"""Names of modalities as they stand in flags: letters, digits and underscores."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jsonargparse import Namespace

__all__ = ["flag_names"]


def flag_names(modalities: Iterable[str]) -> dict[str, str]:
    """The word for each modality in `--modality.WORD.weight` and in configuration files, all different.

    >>> flag_names(["load", "stress [MPa]", "stress-MPa"])
    {'load': 'load', 'stress [MPa]': 'stress_MPa', 'stress-MPa': 'stress_MPa_2'}
    """
    words: dict[str, str] = {}
    for name in modalities:
        words[name] = _free(_word(name), set(words.values()))
    return words


def _word(name: str) -> str:
    word = re.sub(r"\W+", "_", name).strip("_") or "modality"
    return f"{word}_" if hasattr(Namespace, word) else word


def _free(word: str, taken: set[str]) -> str:
    number, free = 1, word
    while free in taken:
        number += 1
        free = f"{word}_{number}"
    return free
