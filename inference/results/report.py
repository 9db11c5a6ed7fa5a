"""One HTML page with everything that a run found; it needs no other file and no network."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from inference.results.arrays import FitArrays
from inference.results.figures.captions import caption
from inference.results.files import write_text
from inference.results.findings import status_sentence, time_sentence
from inference.results.report_sections import Section, sections_of
from inference.results.strict_json import to_json

__all__ = ["write_report"]

_ENVIRONMENT = Environment(
    loader=PackageLoader("inference.results", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
# Figures are drawn at 150 dots per inch; a page has 96.
_SCREEN_SCALE = 96 / 150


class _Figure(NamedTuple):
    section: str
    title: str
    text: str
    data: str
    width: int


def write_report(fit: FitArrays, summary: Mapping[str, Any], figures: Iterable[Path], path: str | Path) -> None:
    """Write the page: status, clusters, scores, graph, course of the fit, and every figure with its caption.

    Everything that comes from the data is escaped; the page holds no script and loads nothing.

    Args:
        fit: The fit.
        summary: Its summary, as `summary.json` has it.
        figures: PNG files, as `write_figures` returns them.
        path: Where the page goes; replaced if it exists.

    Raises:
        OutputError: The disk is full, or the folder is missing or not writable.
    """
    embedded = [_embed(figure) for figure in figures]
    page = _ENVIRONMENT.get_template("report.html").render(
        title=f"{fit.dataset}, seed {fit.seed}",
        is_ok=fit.status == "ok",
        status=status_sentence(summary),
        facts=_facts(summary),
        sections=[section for section in sections_of(fit, summary) if _is_filled(section, embedded)],
        figures=embedded,
        details={"Versions": to_json(summary.get("versions", {})), "Settings": to_json(fit.attributes)},
    )
    write_text(path, page)


def _embed(path: Path) -> _Figure:
    """The picture itself in base64; its width stands in bytes 16 to 19 of a PNG file."""
    content = path.read_bytes()
    width = round(int.from_bytes(content[16:20], "big") * _SCREEN_SCALE)
    return _Figure(*caption(path), base64.b64encode(content).decode("ascii"), width)


def _facts(summary: Mapping[str, Any]) -> list[str]:
    nodes = ", ".join(f"{name} ({count} outcomes)" for name, count in summary["nodes"].items())
    modalities = ", ".join(summary["modalities"])
    return [f"{summary['n_samples']} samples", f"measured as {modalities}", f"nodes {nodes}", time_sentence(summary)]


def _is_filled(section: Section, figures: Iterable[_Figure]) -> bool:
    return bool(section.sentences or section.tables or any(figure.section == section.id for figure in figures))
