"""Which pairs of components are legal, and rows that hold every legal pair."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from functools import cache

from component_levels import DEFAULTS, LEVELS, Level, Row, config_of

from causalpima.inference.training.batched import batched_support

__all__ = ["illegal_pairs", "legal_pairs", "pairs_of", "refusal", "row_name", "rows"]

Pair = frozenset[Level]

_N_CANDIDATES = 4
"""Of so many rows the one that holds most of the pairs that are missing is taken."""


@cache
def _refusal(levels: frozenset[Level]) -> str | None:
    row = dict(levels)
    try:
        config = config_of(row)
    except ValueError as error:
        return str(error)
    if row.get("starts", "one") == "one":
        return None
    reason = batched_support(config, dict.fromkeys(config.modality))  # type: ignore[arg-type]  # names are enough
    return None if reason is None else f"restart_mode: expected processes, since {reason}, got batched; leave it out"


def refusal(row: Row) -> str | None:
    """Why a row is illegal, or None."""
    return _refusal(frozenset(level for level in row.items() if DEFAULTS[level[0]] != level[1]))


def row_name(row: Row) -> str:
    """The row without its defaults."""
    return ", ".join(f"{factor}={value}" for factor, value in row.items() if value != DEFAULTS[factor]) or "defaults"


def pairs_of(row: Row) -> Iterator[Pair]:
    """All pairs of a row."""
    return map(frozenset, itertools.combinations(row.items(), 2))


@cache
def _needs(level: Level) -> Row | None:
    """What else a level needs to be legal: nothing, another level, or two; None if that does not help."""
    alone = dict([level])
    others = [(f, value) for f, levels in LEVELS.items() if f != level[0] for value in levels if value != DEFAULTS[f]]
    for n in range(3):
        for more in itertools.combinations(others, n):
            if len(dict(more)) == n and refusal({**alone, **dict(more)}) is None:
                return dict(more)
    return None


def _completion(pair: Pair) -> Row | None:
    """A legal row with a pair: the rest at its defaults, or as one of the two needs it."""
    one, other = (_needs(level) or {} for level in sorted(pair))
    for more in ({}, one, other, {**one, **other}, {**other, **one}):
        row = {**DEFAULTS, **more, **dict(pair)}
        if refusal(row) is None:
            return row
    return None


@cache
def _completions() -> dict[Pair, Row | None]:
    found: dict[Pair, Row | None] = {}
    for one, other in itertools.combinations(LEVELS, 2):
        for a, b in itertools.product(LEVELS[one], LEVELS[other]):
            pair = frozenset({(one, a), (other, b)})
            found[pair] = _completion(pair)
    return found


def legal_pairs() -> dict[Pair, Row]:
    """Pairs that some row can have, with one that has it."""
    return {pair: row for pair, row in _completions().items() if row is not None}


def illegal_pairs() -> dict[Pair, str]:
    """Pairs that are refused, with the message."""
    return {pair: _refusal_of(pair) for pair, row in _completions().items() if row is None}


def _refusal_of(pair: Pair) -> str:
    """Beside what the two need, so that the message is about the two."""
    needed = {factor: value for level in sorted(pair) for factor, value in (_needs(level) or {}).items()}
    return refusal({**needed, **dict(pair)}) or ""


@cache
def rows(seed: int = 0) -> tuple[Row, ...]:
    """Legal rows that hold every legal pair: greedy, one factor after the other at its best legal level."""
    rng, missing, found = random.Random(seed), dict(legal_pairs()), []
    while missing:
        starts = list(itertools.islice(missing.items(), _N_CANDIDATES))
        candidates = [_filled(_fixed(*start), missing, rng) for start in starts]
        found.append(max(candidates, key=lambda row: sum(pair in missing for pair in pairs_of(row))))
        for held in pairs_of(found[-1]):
            missing.pop(held, None)
    return tuple(found)


def _fixed(pair: Pair, complete: Row) -> dict[str, str]:
    """What a row must have for the sake of a pair."""
    return {factor: value for factor, value in complete.items() if value != DEFAULTS[factor]} | dict(pair)


def _filled(row: dict[str, str], missing: Mapping[Pair, Row], rng: random.Random) -> Row:
    free = [factor for factor in LEVELS if factor not in row]
    rng.shuffle(free)
    for factor in free:
        gains = {
            value: sum(frozenset({(factor, value), level}) in missing for level in row.items())
            for value in LEVELS[factor]
        }
        ranked = sorted(gains, key=lambda value: (-gains[value], rng.random()))
        row[factor] = next(value for value in ranked if refusal({**row, factor: value}) is None)
    return {factor: row[factor] for factor in LEVELS}
