"""Arms of an ablation: named settings in a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from inference.ablation.assignments import value_text
from inference.ablation.cells import Cell

__all__ = ["read_arms"]


class _EveryNameOnce(yaml.SafeLoader):
    """YAML without names that stand twice, of which the first would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping.

        Raises:
            yaml.YAMLError: A name stands twice.
        """
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(problem=f"{twice!r} stands in it twice")
        return super().construct_mapping(node, deep)


def read_arms(path: Path) -> tuple[Cell, ...]:
    """The arms of a YAML file: settings by flag, below the name of each arm.

    Raises:
        ValueError: The file cannot be read, or holds something else.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _EveryNameOnce)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "problem", None) or "it is no text"
        raise ValueError(f"arms: expected a readable YAML file, got {path} ({reason}); mend it") from error
    if not isinstance(content, dict) or not content:
        raise ValueError(f"arms: expected settings below the name of each arm in {path}, got none; see docs/ablate.md")
    return tuple(_arm(path, name, flags) for name, flags in content.items())


def _arm(path: Path, name: object, flags: object) -> Cell:
    if not str(name).strip() or not str(name).isprintable():
        raise ValueError(
            f"arms: expected a name on one line for every arm in {path}, got {str(name)!r}; rename the arm"
        )
    if not isinstance(flags, dict | None):
        raise ValueError(
            f"arms: expected values by flag for {name} in {path}, got {flags!r}; write {name}: {{training.epochs: 5}}"
        )
    texts = {str(flag): _text(path, f"{flag} of {name}", value) for flag, value in (flags or {}).items()}
    return Cell(str(name), {flag.removeprefix("--"): text for flag, text in texts.items()})


def _text(path: Path, place: str, value: object) -> str:
    try:
        return value_text(value)
    except (TypeError, ValueError, RecursionError) as error:  # dates, sets, lists that hold themselves
        raise ValueError(
            f"arms: expected a value as on a command line for {place} in {path}, got {value!r}; put it in quotes"
        ) from error
