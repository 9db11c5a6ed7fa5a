"""One HTML page with everything that a run found; it needs no other file and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from inference.results.files import write_text
from inference.results.findings import time_sentence
from inference.results.fit_verdict import State, fit_verdict
from inference.results.page.content import RunContent
from inference.results.page.headline import headline
from inference.results.page.parts import Section
from inference.results.report_sections import sections_of
from inference.results.text import printable

__all__ = ["page_html", "write_report"]

_ENVIRONMENT = Environment(
    loader=PackageLoader("inference.results", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def write_report(content: RunContent, path: str | Path) -> None:
    """Write the page: what was found in three sentences, then everything behind it, with every figure.

    Everything that comes from the data is escaped; the page holds no script and loads nothing.

    Args:
        content: What stands on it: `RunContent.of_folder` reads it from a run folder.
        path: Where the page goes; replaced if it exists.

    Raises:
        OutputError: The disk is full, or the folder is missing or not writable.
    """
    summary = content.summary
    verdict = fit_verdict(summary)
    page = page_html(
        title=f"{printable(summary['dataset'])}, seed {summary['seed']}",
        state=verdict.state,
        status=f"Verdict: {verdict.state}",
        reasons=verdict.reasons,
        found=headline(summary),
        facts=_facts(summary),
        sections=[section for section in sections_of(content) if section.is_filled],
    )
    write_text(path, page)


def page_html(
    title: str,
    state: State,
    status: str,
    found: Sequence[str],
    facts: Sequence[str],
    sections: Sequence[Section],
    reasons: Sequence[str] = (),
) -> str:
    """A page in the form of a report; all text is escaped.

    Args:
        title: Heading of the page.
        state: How it came out, which colours the status.
        status: A few words on that.
        found: What was found, in sentences.
        facts: Short facts below the heading.
        sections: Everything else.
        reasons: What speaks against it, a sentence each.
    """
    return _ENVIRONMENT.get_template("report.html").render(
        title=title, state=state, status=status, reasons=reasons, found=found, facts=facts, sections=sections
    )


def _facts(summary: Mapping[str, Any]) -> list[str]:
    nodes = ", ".join(f"{name} ({count} outcomes)" for name, count in summary["nodes"].items())
    modalities = ", ".join(summary["modalities"])
    return [f"{summary['n_samples']} samples", f"measured as {modalities}", f"nodes {nodes}", time_sentence(summary)]
