"""What is asked: nodes that are set, nodes that are conditioned on, by the names of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.results.meaning import is_named
from inference.results.naming_findings import withheld_sentence
from inference.results.text import printable

__all__ = ["Question", "check_named", "pairs_of", "read_question"]

_NAMING = "name the clusters (python -m inference.name)"
_MOST_SUGGESTED = 2


@dataclass(frozen=True)
class Question:
    """Outcomes by number of the node.

    Attributes:
        do: Nodes that are set.
        given: Nodes that are conditioned on after that.
    """

    do: Mapping[int, int]
    given: Mapping[int, int]


def pairs_of(flag: str, texts: Sequence[str], outcomes: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """`NODE=OUTCOME` as pairs; names may hold `=` themselves.

    Args:
        flag: `do` or `given`, for messages.
        texts: One per pair.
        outcomes: Outcomes by node.

    Raises:
        ValueError: No pair, or a node twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        node, outcome = _split(flag, text, outcomes)
        if node in found:
            raise ValueError(f"{flag}: expected every node once, got {printable(node)} twice; leave one of them out")
        found[node] = outcome
    return found


def _split(flag: str, text: str, outcomes: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    places = [place for place, character in enumerate(text) if character == "="]
    ways = [(text[:place].strip(), text[place + 1 :].strip()) for place in places]
    if not ways:
        raise ValueError(f"{flag}: expected NODE=OUTCOME, got {printable(text)}; for example {_example(outcomes)}")
    return next(((node, outcome) for node, outcome in ways if outcome in outcomes.get(node, ())), ways[0])


def _example(outcomes: Mapping[str, Sequence[str]]) -> str:
    node, names = next(iter(outcomes.items()))
    return f"{printable(node)}={printable(names[-1])}"


def read_question(
    outcomes: Mapping[str, Sequence[str]], do: Mapping[str, Any] | None, given: Mapping[str, Any] | None
) -> Question:
    """From names to numbers.

    Args:
        outcomes: Outcomes by node, in order.
        do: Outcome by node that is set.
        given: Outcome by node that is conditioned on.

    Raises:
        ValueError: Nothing is asked, a name that is not there, or a node that is both set and conditioned on.
    """
    if not do and not given:
        raise ValueError(f"do: expected NODE=OUTCOME, got nothing to set or to condition on; say {_example(outcomes)}")
    set_, seen = (_numbers(flag, part or {}, outcomes) for flag, part in (("do", do), ("given", given)))
    names = list(outcomes)
    for node in sorted(set(set_) & set(seen)):
        if set_[node] != seen[node]:
            raise ValueError(
                f"given: expected no contradiction to --do, got {printable(names[node])} set to "
                f"{printable(outcomes[names[node]][set_[node]])} and conditioned on another outcome; leave one out"
            )
        raise ValueError(f"given: expected nodes that are not set, got {printable(names[node])} in both; leave one out")
    return Question(set_, seen)


def _numbers(flag: str, pairs: Mapping[str, Any], outcomes: Mapping[str, Sequence[str]]) -> dict[int, int]:
    found = {}
    for node, outcome in pairs.items():
        if node not in outcomes:
            raise ValueError(f"{flag}: expected a node of {_listed(outcomes)}, got {printable(node)}")
        if str(outcome) not in outcomes[node]:
            raise ValueError(
                f"{flag}: expected an outcome of {printable(node)} ({_listed(outcomes[node])}), got "
                f"{printable(outcome)}; choose one of these"
            )
        found[list(outcomes).index(node)] = list(outcomes[node]).index(str(outcome))
    return found


def _listed(names: Any) -> str:
    return ", ".join(map(printable, names))


def check_named(summary: Mapping[str, Any], flag: str = "do") -> None:
    """Refuse questions about nodes that mean nothing.

    Raises:
        ValueError: Some node is not identified; says what would name them.
    """
    if is_named(summary):
        return
    found = summary.get("identifiability") or {}
    identified = _listed(found.get("identified_nodes") or ()) or "none"
    reason = withheld_sentence(summary) or f"of {_listed(summary.get('nodes', {}))} identified: {identified}"
    ways = [_NAMING, *map(printable, (found.get("suggestions") or [])[:_MOST_SUGGESTED])]
    raise ValueError(
        f"{flag}: expected a run all of whose nodes have a meaning, got clusters without names ({reason.rstrip('.')}); "
        f"{'; or '.join(ways)}"
    )
