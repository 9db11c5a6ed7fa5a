"""The value of `--mask`: which nodes each modality sees, `image=shape,hue spectrum=hue`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["mask_from_text", "with_mask"]

_EXAMPLE = "for example image=N1,N2 curve=N2"


def mask_from_text(value: str | Sequence[str] | Mapping[str, Sequence[str] | str]) -> dict[str, tuple[str, ...]]:
    """Nodes that each modality sees, by modality.

    Whether there are such nodes and modalities is for those to check who know them.

    Args:
        value: `"a=N1,N2 b=N2"`, `["a=N1,N2", "b=N2"]`, or a mapping as configuration files have it.

    Raises:
        ValueError: Anything else, a modality given twice, or a node given twice for one modality.

    >>> mask_from_text("a=N1,N2 b=N2")
    {'a': ('N1', 'N2'), 'b': ('N2',)}
    """
    pairs = [_checked(name, nodes) for name, nodes in _pairs(value)]
    mask = dict(pairs)
    if len(mask) < len(pairs):
        raise ValueError(f"mask: expected every modality once, {_EXAMPLE}, got {value!r}")
    return mask


def with_mask(argv: Sequence[str]) -> list[str]:
    """A command line with the pairs that follow `--mask` as one word: `--mask a=N1,N2 b=N2` -> `--mask "a=N1,N2 b=N2"`.

    >>> with_mask(["--mask", "a=N1", "b=N2", "--quiet"])
    ['--mask', 'a=N1 b=N2', '--quiet']
    """
    words: list[str] = []
    for word in argv:
        if words[-2:-1] == ["--mask"] and not any(part.startswith("--") for part in (words[-1], word)):
            words[-1] = f"{words[-1]} {word}"
        else:
            words.append(word)
    return words


def _pairs(value: str | Sequence[str] | Mapping[str, Sequence[str] | str]) -> list[tuple[str, Sequence[str]]]:
    if isinstance(value, Mapping):
        return [(str(name), _words(nodes)) for name, nodes in value.items()]
    words = value.split() if isinstance(value, str) else [part for word in value for part in str(word).split()]
    return [_split(word) for word in words]


def _split(word: str) -> tuple[str, Sequence[str]]:
    if any("=" in part for part in word.partition(",")[2].split(",")):
        entries = re.sub(r",(?=[^,=]*=)", " ", word)
        raise ValueError(f"mask: expected modalities separated by spaces, got commas, {word!r}; write --mask {entries}")
    name, equals, nodes = word.rpartition("=")
    if not equals:
        raise ValueError(f"mask: expected MODALITY=NODE,NODE, {_EXAMPLE}, got {word!r}")
    return name, _words(nodes)


def _words(nodes: Sequence[str] | str) -> Sequence[str]:
    return [node.strip() for node in nodes.split(",")] if isinstance(nodes, str) else nodes


def _checked(name: str, nodes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    names = tuple(map(str, nodes))
    if not name or not names or not all(names):
        raise ValueError(
            f"mask: expected a modality and the nodes that it sees, {_EXAMPLE}, got {name}={','.join(names)}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"mask: expected every node once per modality, {_EXAMPLE}, got {name}={','.join(names)}")
    return name, names
