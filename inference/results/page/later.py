"""Results that later commands left in the folder of a run, as sections of its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inference.results.input_files import read_json
from inference.results.page.parts import Part, Table
from inference.results.text import format_r2, is_number, printable, shorten
from inference.results.versions import FormatError

__all__ = ["LATER", "later_parts", "read_later"]

LATER = {
    "check": "Negative controls (inference.check)",
    "diagnose": "Diagnostics (inference.diagnose)",
    "mcmc": "Markov chains (inference.mcmc)",
    "evaluate": "Scores (inference.evaluate)",
    "query": "Queries (inference.query)",
}
"""What is looked for, as `NAME.json` in the folder of the run, and what stands above it."""

_LINE = ("name", "verdict", "found", "advice")
_MOST_ROWS = 40
_WIDTH = 60
_R2 = ("r2", "r2_cluster_mean")


def read_later(folder: Path) -> dict[str, Any]:
    """The JSON files that commands left, by the name of the command.

    Raises:
        ValueError: One of them is no JSON.
    """
    there = {name: folder / f"{name}.json" for name in LATER}
    return {name: _read(path) for name, path in there.items() if path.is_file()}


def _read(path: Path) -> Any:
    try:
        return read_json(path, path.parent)
    except FormatError:
        raise
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected JSON, got something else; remove it, or run its command again") from error


def later_parts(later: Mapping[str, Any]) -> list[Part]:
    """A part per command: lines with verdicts where it gave such, else its numbers."""
    return [Part(LATER[name], tables=list(_tables(found))) for name, found in later.items()]


def _tables(found: Any) -> Iterator[Table]:
    entries = found if isinstance(found, Mapping) else {"lines": found}
    for name, value in entries.items():
        if _are_lines(value):
            yield _verdicts(printable(name), value)
    numbers = list(_numbers(entries))
    if numbers and not any(map(_are_lines, entries.values())):
        yield Table("", ("quantity", "value"), numbers[:_MOST_ROWS])


def _are_lines(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(line, Mapping) and "verdict" in line for line in value)
    )


def _verdicts(name: str, lines: list[Mapping[str, Any]]) -> Table:
    rows = [[printable(line.get(key, "")) for key in _LINE] for line in lines]
    head = ("what was looked at", "verdict", "what was found", "what to do")
    return Table("" if name == "lines" else name, head, rows, is_numeric=False)


def _numbers(value: Any, path: str = "") -> Iterator[list[str]]:
    """Single numbers and words with the keys that lead to them; arrays are left out."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _numbers(entry, f"{path}: {printable(key)}" if path else printable(key))
    elif is_number(value):
        is_r2 = path.rpartition(": ")[2] in _R2
        yield [shorten(path, _WIDTH), format_r2(value) if is_r2 else f"{value:.4g}"]
    elif isinstance(value, str):
        yield [shorten(path, _WIDTH), shorten(value, _WIDTH)]
