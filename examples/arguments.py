"""Checks of the arguments of generators."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["check_at_least", "check_choice", "check_seed"]


def check_at_least(name: str, value: float, least: int) -> None:
    """Refuse a number below the least one.

    Raises:
        ValueError: If it is below.
    """
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value}; ask for {least} or more")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is none of the choices.

    Raises:
        ValueError: If it is none of them.
    """
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}; choose one of these")


def check_seed(seed: int) -> None:
    """Refuse a negative seed.

    Raises:
        ValueError: If it is negative.
    """
    if seed < 0:
        raise ValueError(f"seed: expected a non-negative integer, got {seed}; choose 0 or more")
