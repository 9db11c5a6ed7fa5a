"""What the page of a run is made from: its summary, a few arrays, its figures, and what later commands left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.base import Part, RunContent, Table
from causalpima.inference.reporting.arviz import GROUPS, run_facts
from causalpima.inference.store.files import FormatError
from causalpima.inference.store.input_files import read_json
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.store.text import format_r2, is_number, printable, shorten

__all__ = [
    "LATER",
    "content_of_fit",
    "content_of_folder",
    "later_parts",
    "read_later",
]


# Results that later commands left in the folder of a run, as sections of its page.


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
    return {name: _read_json(path) for name, path in there.items() if path.is_file()}


def _read_json(path: Path) -> Any:
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


_GROUP = "variational"


def content_of_fit(fit: FitArrays, summary: Mapping[str, Any], figures: Iterable[Path] = ()) -> RunContent:
    """From a fit in memory, by way of the arrays that its file would hold."""
    return _content(GROUPS[_GROUP](fit), run_facts(fit), summary, figures)


def content_of_folder(
    folder: RunFolder, summary: Mapping[str, Any] | None = None, changed: Path | None = None
) -> RunContent:
    """From what a run folder holds; no data and no weights are needed.

    Args:
        folder: The folder.
        summary: Its summary where `summary.json` is not yet written.
        changed: Another folder with figures and results of later commands that go before those of the folder.

    Raises:
        ValueError: It holds no finished run, one that diverged, or files that can't be read.
    """
    found = folder.read_summary() if summary is None else summary
    if found["status"] == "diverged":
        raise ValueError(f"{folder.path}: expected a run that found something, got one that diverged; fit again")
    homes = (folder.path,) if changed is None else (folder.path, changed)
    figures = {path.name: path for home in homes for path in sorted(home.glob("figures/*.png"))}
    later = {name: content for home in homes for name, content in read_later(home).items()}
    tree = folder.read_posterior((_GROUP,), is_finished=summary is None)
    return _content(tree[_GROUP].dataset, json.loads(tree.attrs["facts"]), found, figures.values(), later)


def _content(
    variational: xr.Dataset,
    facts: Mapping[str, Any],
    summary: Mapping[str, Any],
    figures: Iterable[Path],
    later: Mapping[str, Any] | None = None,
) -> RunContent:
    r, log_joint = variational["responsibilities"], variational["log_joint"]
    outcomes = tuple(tuple(map(str, variational[dim].to_numpy())) for dim in log_joint.dims)
    return RunContent(summary, r.to_numpy(), log_joint.to_numpy(), outcomes, facts, tuple(figures), later or {})
