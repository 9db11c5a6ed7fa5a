"""Arms of an ablation: named settings in a YAML file."""

from __future__ import annotations

from pathlib import Path

from inference.ablation.assignments import value_text
from inference.ablation.cells import Cell
from inference.results.input_files import reason_of
from inference.results.yaml_text import read_yaml

__all__ = ["read_arms"]


def read_arms(path: Path) -> tuple[Cell, ...]:
    """The arms of a YAML file: settings by flag, below the name of each arm.

    Raises:
        ValueError: The file cannot be read, or holds something else.
    """
    try:
        content = read_yaml(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"arms: expected a readable YAML file, got {path} ({reason_of(error)}); mend it") from error
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
    return Cell(str(name), {flag.removeprefix("--"): value_text(value) for flag, value in (flags or {}).items()})
