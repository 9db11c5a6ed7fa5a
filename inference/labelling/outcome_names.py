"""What the outcomes of nodes are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["outcome_names"]

_UNNAMED = "unnamed"


def outcome_names(nodes: Mapping[str, int], levels: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Names of the outcomes of every node: its levels, where it has some, else `0`, `1`, ...

    Outcomes beyond the levels are called `unnamed`, with a number where there are several.

    Args:
        nodes: Outcomes per node.
        levels: Per node that has them, the names of its first outcomes.

    >>> outcome_names({"type": 2, "response": 3}, {"response": ("soft", "stiff")})
    (('0', '1'), ('soft', 'stiff', 'unnamed'))
    """
    return tuple(_padded(levels[name], count) if name in levels else _numbers(count) for name, count in nodes.items())


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(str(outcome) for outcome in range(count))


def _padded(levels: Sequence[str], count: int) -> tuple[str, ...]:
    n_more = count - len(levels)
    more = [_UNNAMED] if n_more == 1 else [f"{_UNNAMED}_{number}" for number in range(1, n_more + 1)]
    return (*levels, *more)
