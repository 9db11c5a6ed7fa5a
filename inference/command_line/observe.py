"""The value of `--observe`: which variables hold the outcomes of which nodes, `type` or `type=alloy,response=class`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["observe_from_text", "observed_in", "with_observed"]

_FLAG = "--observe"
_EXAMPLE = "for example type, or type=alloy,response=class"


def observe_from_text(value: str) -> dict[str, str]:
    """Variables by node; a name alone is a variable that is called like its node.

    Args:
        value: `"type"` or `"type=alloy,response=class"`.

    Raises:
        ValueError: An entry that is empty, or a node given twice.

    >>> observe_from_text("type,response=class")
    {'type': 'type', 'response': 'class'}
    """
    pairs = [_pair(part, value) for part in value.split(",")]
    variables = dict(pairs)
    if len(variables) < len(pairs):
        raise ValueError(f"observe: expected every node once, {_EXAMPLE}, got {value!r}")
    return variables


def _pair(part: str, value: str) -> tuple[str, str]:
    node, equals, variable = (word.strip() for word in part.partition("="))
    if not node or (equals and not variable):
        raise ValueError(f"observe: expected NODE or NODE=VARIABLE with commas between them, {_EXAMPLE}, got {value!r}")
    return node, variable or node


def with_observed(argv: Sequence[str]) -> list[str]:
    """A command line with all that follows `--observe` as the one setting `--observe.variables`.

    Raises:
        ValueError: A value that is none, or nothing after the flag.
    """
    words, found, rest = list(argv), [], []
    while words:
        word = words.pop(0)
        if word == _FLAG and words and not words[0].startswith("--"):
            found.append(words.pop(0))
        elif word.startswith(f"{_FLAG}="):
            found.append(word.removeprefix(f"{_FLAG}="))
        elif word == _FLAG:
            raise ValueError(f"observe: expected NODE or NODE=VARIABLE after --observe, {_EXAMPLE}, got none")
        else:
            rest.append(word)
    return [*rest, f"{_FLAG}.variables={json.dumps(observe_from_text(','.join(found)))}"] if found else rest


def observed_in(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables that settings of a run, nested as in a file or flat as on a command line, observe."""
    nested = settings.get("observe")
    of_file = nested.get("variables") if isinstance(nested, Mapping) else None
    variables = settings.get("observe.variables", of_file)
    if isinstance(variables, str):
        try:
            variables = json.loads(variables)
        except ValueError:  # the parser refuses it in its own words
            variables = {}
    return tuple(dict.fromkeys(variables.values())) if isinstance(variables, Mapping) else ()
