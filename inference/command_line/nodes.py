"""The value of `--nodes`: outcomes per node, `2,3` or `type=2,response=3`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

__all__ = ["parse_nodes"]

_EXAMPLES = "for example 2,3 or type=2,response=3"
# A cluster per cell: far beyond what can be fitted, or counted in a moment.
_MOST_CELLS = 10**6


def parse_nodes(value: str | int | Sequence[int] | Mapping[str, int]) -> dict[str, int]:
    """Outcomes per node by name; unnamed nodes are called N1, N2, ...

    Args:
        value: `"2,3"`, `"type=2,response=3"`, `[2, 3]` or `{"type": 2, "response": 3}`.

    Raises:
        ValueError: Anything else, a name given twice, fewer than two outcomes, or more than a million combinations.

    >>> parse_nodes("type=2,response=3"), parse_nodes([2, 3])
    ({'type': 2, 'response': 3}, {'N1': 2, 'N2': 3})
    """
    pairs = _pairs(value)
    nodes = {name: _outcomes(name, outcomes) for name, outcomes in pairs}
    if not pairs:
        raise ValueError(f"nodes: expected outcomes per node, {_EXAMPLES}, got {value!r}")
    if len(nodes) < len(pairs):
        raise ValueError(f"nodes: expected a name of its own for every node, {_EXAMPLES}, got {value!r}")
    _check_cells(nodes)
    return nodes


def _check_cells(nodes: Mapping[str, int]) -> None:
    cells = math.prod(nodes.values())
    if cells > _MOST_CELLS:
        many = f"{cells}" if cells < 10 * _MOST_CELLS else f"about 1e{math.floor(math.log10(cells))}"
        raise ValueError(
            f"nodes: expected at most {_MOST_CELLS} combinations of outcomes, got {many}; give fewer outcomes or nodes"
        )


def _pairs(value: object) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(name), outcomes) for name, outcomes in value.items()]
    if isinstance(value, str):
        parts = value.strip("[] ").split(",")
        return [_split(part.strip(), position) for position, part in enumerate(parts, start=1)]
    sequence = value if isinstance(value, list | tuple) else [value]
    return [(f"N{position}", outcomes) for position, outcomes in enumerate(sequence, start=1)]


def _split(part: str, position: int) -> tuple[str, str]:
    name, equals, outcomes = part.partition("=")
    return (name.strip(), outcomes) if equals else (f"N{position}", name)


def _outcomes(name: str, value: object) -> int:
    try:
        outcomes = int(str(value))
    except ValueError:
        outcomes = 0
    if outcomes < 2 or not name.isidentifier():
        raise ValueError(
            f"nodes: expected whole numbers >= 2 and names that are one word, {_EXAMPLES}, "
            f"got {value!r} for node {name!r}"
        )
    return outcomes
