"""The value of `--nodes`: outcomes per node, `2,3` or `type=2,response=3`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["parse_nodes"]


def parse_nodes(value: str | int | Sequence[int] | Mapping[str, int]) -> dict[str, int]:
    """Outcomes per node by name; unnamed nodes are called N1, N2, ...

    Args:
        value: `"2,3"`, `"type=2,response=3"`, `[2, 3]` or `{"type": 2, "response": 3}`.

    Raises:
        ValueError: Anything else, a name given twice, or fewer than two outcomes.
    """
    if isinstance(value, Mapping):
        pairs = [(str(name), outcomes) for name, outcomes in value.items()]
    elif isinstance(value, str):
        pairs = [_split(part.strip(), position) for position, part in enumerate(value.split(","), start=1)]
    else:
        sequence = [value] if isinstance(value, int) else list(value)
        pairs = [(f"N{position}", outcomes) for position, outcomes in enumerate(sequence, start=1)]
    nodes = {name: _outcomes(name, outcomes) for name, outcomes in pairs}
    if len(nodes) != len(pairs) or not nodes:
        raise ValueError(f"nodes: expected different names, for example type=2,response=3, got {value!r}")
    return nodes


def _split(part: str, position: int) -> tuple[str, str]:
    name, equals, outcomes = part.partition("=")
    return (name.strip(), outcomes) if equals else (f"N{position}", name)


def _outcomes(name: str, value: str | int) -> int:
    try:
        outcomes = int(value)
    except (TypeError, ValueError):
        outcomes = 0
    if outcomes < 2 or isinstance(value, bool) or not name.isidentifier():
        raise ValueError(
            f"nodes: expected whole numbers >= 2, for example 2,3 or type=2,response=3, got {value!r} for node {name!r}"
        )
    return outcomes
