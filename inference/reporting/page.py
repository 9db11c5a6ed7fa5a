"""One HTML page with everything that a run found; it needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from causalpima.inference.findings.base import Part, Picture, RunContent, Section
from causalpima.inference.findings.clusters import (
    State,
    fit_verdict,
    time_sentence,
)
from causalpima.inference.findings.drawing import Caption, file_names, outcome_files
from causalpima.inference.findings.graph import (
    Signs,
    edge_texts,
)
from causalpima.inference.reporting.content import later_parts
from causalpima.inference.reporting.findings import FINDINGS
from causalpima.inference.reporting.headline import headline
from causalpima.inference.reporting.page_tables import (
    bibtex,
    picture_of,
)
from causalpima.inference.store.files import write_text
from causalpima.inference.store.text import printable

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = [
    "page_html",
    "sections_of",
    "write_report",
]


# What the report says in words, tables and pictures, section by section.


Summary = Mapping[str, Any]

_SIGNS = Signs("to", "from", "with")

_LATER = {
    "check": Caption(
        "checks",
        "Negative controls",
        "How often edges are found where there are none, and how far clusters and edges stay the same when samples are "
        "drawn again (inference.check).",
    ),
    "k_hat": Caption(
        "checks",
        "k-hat",
        "How well q(Z|X) covers the posterior of every sample: below 0.7 importance weights can be trusted "
        "(inference.diagnose).",
    ),
    "predictive": Caption(
        "checks",
        "Predictive check",
        "What was measured, beside what the fit expects of such samples (inference.diagnose).",
    ),
    "rank_plots": Caption(
        "checks",
        "Rank plots",
        "Ranks of the draws of each start among those of all: even where all found the same (inference.diagnose).",
    ),
    "mcmc_ranks": Caption(
        "checks",
        "Ranks of the chains",
        "Ranks of the draws of each chain among those of all: even where the chains agree (inference.mcmc).",
    ),
    "mcmc_edges": Caption(
        "checks",
        "Edges by several routes",
        "Probability of every edge by the chains, beside the exact posterior (inference.mcmc).",
    ),
    "query": Caption(
        "checks",
        "Query",
        "What would happen if nodes were set, beside what was observed (inference.query).",
    ),
}
"""What is said beside the figures of later commands."""

_CAPTIONS = {name: known for finding in FINDINGS for name, known in finding.captions.items()} | _LATER


def sections_of(content: RunContent) -> list[Section]:
    """All sections in reading order; some may be empty."""
    pictures = section_pictures(content.figures, content.summary)
    found = [section for finding in FINDINGS for section in finding.sections(content)]
    about = [_checks(content), Section("other", "Further figures"), _details(content), _citation(content)]
    return [_with_pictures(section, pictures.get(section.id, ()), content) for section in (*found, *about)]


def _with_pictures(section: Section, pictures: Sequence[Picture], content: RunContent) -> Section:
    if section.id == "appearance":
        return _by_modality(section, pictures, content)
    return section._replace(pictures=[*section.pictures, *pictures])


def _by_modality(section: Section, pictures: Sequence[Picture], content: RunContent) -> Section:
    """Modality by modality, so that nearest sample and decoded mean stand together."""
    left, parts = list(pictures), []
    for name, file in file_names(content.summary["modalities"]).items():
        own = [picture for picture in left if picture.title.endswith(f": {file}")]
        left = [picture for picture in left if picture not in own]
        parts += [Part(printable(name), pictures=own)] if own else []
    return section._replace(pictures=left, parts=parts)


def section_pictures(figures: Iterable[Path], summary: Mapping[str, Any]) -> dict[str, list[Picture]]:
    """The pictures of each section, in reading order; those of single nodes are left out."""
    own = {f"outcomes_{file}" for file in outcome_files(summary["nodes"], summary["modalities"]).values()}
    found: dict[str, list[Picture]] = {}
    for path in sorted(figures, key=caption_order):
        if path.stem not in own:
            known = caption(path)
            alt = _graph_text(summary) if path.stem == "graph" else known.title
            found.setdefault(known.section, []).append(picture_of(path, known.title, known.text, alt))
    return found


def _graph_text(summary: Mapping[str, Any]) -> str:
    """The edges in words."""
    edges = [" ".join(text.split()) for text in edge_texts(summary, 40, _SIGNS)]
    return f"Graph over the nodes: {'; '.join(edges) or 'no edge'}"


def caption(path: Path) -> Caption:
    """Caption of a figure; one that is not known goes to the end under the name of its file."""
    for name, known in _CAPTIONS.items():
        if path.stem == name:
            return known
        if path.stem.startswith(f"{name}_"):
            return known._replace(title=f"{known.title}: {path.stem.removeprefix(f'{name}_')}")
    return Caption("other", path.stem.replace("_", " "), "")


def caption_order(path: Path) -> tuple[int, str]:
    """Sorts figures as a reader meets them: by kind, then by the name of the file."""
    for place, name in enumerate(_CAPTIONS):
        if path.stem == name or path.stem.startswith(f"{name}_"):
            return place, path.stem
    return len(_CAPTIONS), path.stem


def _checks(content: RunContent) -> Section:
    return Section("checks", "Checks and diagnostics", parts=later_parts(content.later))


def _details(content: RunContent) -> Section:
    settings = yaml.safe_dump(dict(content.facts), sort_keys=False, allow_unicode=True, default_flow_style=None)
    versions = yaml.safe_dump(dict(content.summary.get("versions", {})), sort_keys=False, allow_unicode=True)
    return Section("details", "Configuration and versions", texts=[("Versions", versions), ("Settings", settings)])


def _citation(content: RunContent) -> Section:
    sentences = ["The method is that of the paper, the figures are those of this software: please cite both."]
    return Section("cite", "How to cite", sentences, texts=[("BibTeX", bibtex(content.summary.get("versions", {})))])


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: only a page needs it

    environment = Environment(
        loader=PackageLoader("causalpima.inference.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def write_report(content: RunContent, path: str | Path) -> None:
    """Write the page: what was found in three sentences, then everything behind it, with every figure.

    Everything that comes from the data is escaped; the page holds no script and loads nothing.

    Args:
        content: What stands on it: `content_of_folder` reads it from a run folder.
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
    return _template().render(
        title=title, state=state, status=status, reasons=reasons, found=found, facts=facts, sections=sections
    )


def _facts(summary: Mapping[str, Any]) -> list[str]:
    nodes = ", ".join(f"{name} ({count} outcomes)" for name, count in summary["nodes"].items())
    modalities = ", ".join(summary["modalities"])
    return [f"{summary['n_samples']} samples", f"measured as {modalities}", f"nodes {nodes}", time_sentence(summary)]
