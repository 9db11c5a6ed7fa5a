"""Which components go together; the others are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from guides.fusion import FUSIONS
from inference.training.priors import PRIORS
from models.user_code import names_user_code

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["RULES", "Rule", "check_components"]


class Rule(NamedTuple):
    """Two components that do not go together.

    Attributes:
        name: The setting that is at fault.
        refuses: Whether a configuration breaks the rule.
        expected: What would be right, and in view of what.
        got: What the configuration has.
        advice: The reason, and what to do.
    """

    name: str
    refuses: Callable[[FitConfig], bool]
    expected: str
    got: Callable[[FitConfig], str]
    advice: str


RULES: tuple[Rule, ...] = ()
"""A new component adds those of its own here."""


def check_components(config: FitConfig) -> None:
    """Refuse components that are none, and those that do not go together.

    Raises:
        ValueError: The message begins with the name of the setting and ends with what to do.
    """
    for name, value, table in (
        ("model.prior", config.model.prior, PRIORS),
        ("guide.fusion", config.guide.fusion, FUSIONS),
    ):
        if value not in table and not names_user_code(value):
            raise ValueError(f"{name}: expected one of {', '.join(table)}, or module:Class, got {value!r}")
    for rule in RULES:
        if rule.refuses(config):
            raise ValueError(f"{rule.name}: expected {rule.expected}, got {rule.got(config)}; {rule.advice}")
