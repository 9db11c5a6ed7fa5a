"""Flags with pairs: `--read_outs image=moments,curve=my_module:peaks`."""

from __future__ import annotations

import json
from collections.abc import Sequence

__all__ = ["pairs_from_text", "with_pairs"]

_EXAMPLES = {"--read_outs": "image=moments", "--environments.targets": "do_hue=hue,do_size=size"}


def pairs_from_text(flag: str, value: str) -> dict[str, str]:
    """`a=b,c=d` as a mapping. Names may hold `=`, values may not.

    Args:
        flag: Name of the flag, for messages.
        value: The text.

    Raises:
        ValueError: An entry that is no pair, or a name given twice.

    >>> pairs_from_text("--environments.targets", "do(hue=1)=hue, heated=size")
    {'do(hue=1)': 'hue', 'heated': 'size'}
    """
    name, example = flag.removeprefix("--"), _EXAMPLES[flag]
    entries = [tuple(word.strip() for word in part.rpartition("=")) for part in value.split(",")]
    if not all(key and word for key, _, word in entries):
        raise ValueError(f"{name}: expected pairs with commas between them, for example {example}, got {value!r}")
    found = {key: word for key, _, word in entries}
    if len(found) < len(entries):
        raise ValueError(f"{name}: expected every name once, for example {example}, got {value!r}")
    return found


def with_pairs(argv: Sequence[str]) -> list[str]:
    """A command line whose pairs are as the parser takes mappings, flag and value in one word.

    Raises:
        ValueError: Pairs that are none.
    """
    words, found = list(argv), []
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        if flag in _EXAMPLES and not equals and words and not words[0].startswith("--"):
            equals, value = "=", words.pop(0)
        found.append(f"{flag}={_mapping(flag, value)}" if flag in _EXAMPLES and equals else word)
    return found


def _mapping(flag: str, value: str) -> str:
    return value if value.lstrip().startswith("{") else json.dumps(pairs_from_text(flag, value))
