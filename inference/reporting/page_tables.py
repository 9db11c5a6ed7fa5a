"""Tables of what was measured and how it was modelled, and of the cells."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.findings.base import Part, Picture, RunContent, Table
from causalpima.inference.findings.drawing import outcome_files
from causalpima.inference.findings.graph import drawn_class, short_pairs, shown_graph
from causalpima.inference.findings.meaning import is_named
from causalpima.inference.findings.physics import estimate_text, interval_text, parameter_headings, physics_by_cell
from causalpima.inference.graphs.scores import conditional_table, member_of, parents_of
from causalpima.inference.reporting.figures.nodes import MOST_NODES
from causalpima.inference.reporting.headline import SIGNS, posterior_method
from causalpima.inference.store.input_files import read_bytes, reason_of
from causalpima.inference.store.text import cell_names, format_number, printable, shorten

__all__ = [
    "OutcomePictures",
    "bibtex",
    "cell_table",
    "conditional_tables",
    "decoder_table",
    "modality_table",
    "node_parts",
    "outcome_pictures",
    "physics_tables",
    "picture_of",
    "posterior_tables",
]


Summary = Mapping[str, Any]

_NAME_WIDTH = 40


def modality_table(summary: Summary) -> Table:
    """What was measured."""
    head = ("modality", "shape", "unit", "positions", "scale", "samples", "elements missing")
    rows = [[printable(name), *_measured(modality)] for name, modality in summary["modalities"].items()]
    text = f"Measured on {summary['n_samples']} samples. Elements are counted where a sample has the modality."
    return Table(text, head, rows)


def _measured(modality: Summary) -> list[str]:
    axis, transform = modality.get("axis") or {}, modality.get("transform", "identity")
    return [
        " × ".join(map(str, modality["shape"])),
        printable(modality.get("unit") or "-"),
        printable(f"{axis.get('name', '-')} {axis.get('unit', '')}"),
        "as measured" if transform == "identity" else printable(transform),
        str(modality["present"]),
        f"{100 * (modality.get('missing_elements') or 0.0):.3g} %",
    ]


def physics_tables(content: RunContent) -> list[Table]:
    """A table per modality with a law: cells in rows, `value ± standard error [interval]` per parameter."""
    names = cell_names(content.outcome_names, _NAME_WIDTH)
    return [
        _law(printable(name), cells, names)
        for name, modality in content.summary["modalities"].items()
        if (cells := physics_by_cell(modality))
    ]


def _law(name: str, cells: Mapping[str, Mapping[str, Summary]], names: Sequence[str]) -> Table:
    parameters = [f"{p} ({unit})" if unit else p for p, unit in parameter_headings(cells)]
    rows = [[cell, *_parameters(entries)] for cell, entries in zip(names, cells.values(), strict=True)]
    return Table(f"{name}: value ± standard error [95 % interval].", ("cell", "independent samples", *parameters), rows)


def _parameters(entries: Mapping[str, Summary]) -> list[str]:
    samples = next(iter(entries.values()))["effective_samples"]
    return [format_number(samples, 1), *(f"{estimate_text(entry)}{interval_text(entry)}" for entry in entries.values())]


def cell_table(content: RunContent) -> Table:
    """Size, weight and certainty of each cell."""
    head = (f"({', '.join(content.summary['nodes'])})", "samples", "share", "p(N)", "certainty")
    text = (
        "Samples count for their most probable cell. Share is the mean of q(N|X) over all samples, certainty its mean "
        "over the samples of the cell; p(N) is what the graph says."
    )
    names = cell_names(content.outcome_names, _NAME_WIDTH)
    prior = np.exp(content.log_joint.reshape(-1))
    best = content.responsibilities.argmax(axis=1)
    rows = [
        [name, *_cell(content.responsibilities[:, cell], float(prior[cell]), best == cell)]
        for cell, name in enumerate(names)
    ]
    return Table(text, head, rows)


def _cell(r: np.ndarray, prior: float, members: np.ndarray) -> list[str]:
    certainty = float(r[members].mean()) if members.any() else None
    return [str(members.sum()), *map(format_number, (float(r.mean()), prior, certainty))]


def decoder_table(summary: Summary) -> Table:
    """Likelihoods, and variances of Gaussian decoders."""
    head = ("modality", "likelihood", "variance while training", "variance reported")
    rows = [
        [printable(name), printable(modality.get("likelihood", "normal")), *_variances(modality)]
        for name, modality in summary["modalities"].items()
    ]
    text = (
        "Likelihoods and the variance of Gaussian decoders, in squared units of the data, or on the logarithmic or "
        "asinh scale where there is one. A dash: the likelihood has no such variance."
    )
    return Table(text, head, rows)


def _variances(modality: Summary) -> list[str]:
    found = modality.get("decoder_variance") or {}
    return ["-" if found.get(key) is None else f"{found[key]:.4g}" for key in ("training", "reported")]


# Tables of the graph on the page: probabilities of edges and classes, and conditional tables along the graph.


_GRAPH_NAME_WIDTH = 24
_MOST_ROWS = 32
_MOST_CLASSES = 8


def posterior_tables(summary: Summary) -> list[Table]:
    """Probabilities of edges, then of classes; none without a posterior."""
    posterior = summary.get("graph", {}).get("posterior")
    if not posterior:
        return []
    return [_edges(posterior), *_classes(posterior)]


def _edges(posterior: Summary) -> Table:
    """A row per pair, the most probably joined first."""
    names = [shorten(printable(name), _GRAPH_NAME_WIDTH) for name in posterior["nodes"]]
    directed, joined = (np.array(posterior[f"{kind}_probability"], dtype=float) for kind in ("edge", "adjacency"))
    sure = np.array(posterior["compelled_probability"], dtype=float)
    pairs = sorted(combinations(range(len(names)), 2), key=lambda pair: -joined[pair])
    short, nodes = short_pairs(posterior), posterior["nodes"]
    rows = [
        [f"{names[i]} — {names[j]}"]
        + (
            ["too few samples", *"––––"]
            if {nodes[i], nodes[j]} in short
            else [_two(x) for x in (joined[i, j], directed[i, j], directed[j, i], sure[i, j], sure[j, i])]
        )
        for i, j in pairs[:_MOST_ROWS]
    ]
    text = (
        f"Probabilities of edges ({posterior_method(posterior)}), uniform beforehand over the graphs that agree with "
        "what is known. An arrow runs from cause to effect. Compelled: so directed in all graphs of the class; what a "
        "direction has beyond that is the prior's."
    )
    head = ("pair", "joined", "first → second", "second → first", "compelled →", "compelled ←")
    return Table(text, head, rows)


def _two(value: float) -> str:
    return format_number(float(value), 2)


def _classes(posterior: Summary) -> list[Table]:
    classes = posterior.get("classes") or []
    rows = [
        [drawn_class(found["cpdag"], posterior["nodes"], SIGNS), format_number(found["probability"], 3)]
        for found in classes[:_MOST_CLASSES]
    ]
    more = f", the first {_MOST_CLASSES} of {len(classes)}" if len(classes) > _MOST_CLASSES else ""
    text = f"Classes of graphs that together carry 95 % of the probability{more}. —: direction not identified."
    return [Table(text, ("class", "probability"), rows)] if rows else []


def conditional_tables(summary: Summary, outcome_names: Sequence[Sequence[str]], log_joint: np.ndarray) -> list[Table]:
    """p(node | its causes) along a graph of the class that is shown; none where nodes have no meaning."""
    if not is_named(summary) or len(outcome_names) == 1 or shown_graph(summary).basis == "strengths":
        return []
    dag, joint = _dag(summary), np.exp(log_joint)
    return [_conditional(summary, outcome_names, joint, node, parents_of(dag, node)) for node in range(len(dag))]


def _dag(summary: Summary) -> np.ndarray:
    found = shown_graph(summary)
    mixed = np.zeros((len(found.names), len(found.names)), dtype=int)
    for edge in found.edges:
        mixed[edge.first, edge.second] = 1
        mixed[edge.second, edge.first] = int(not edge.is_directed)
    return member_of(mixed)


def _conditional(
    summary: Summary, outcome_names: Sequence[Sequence[str]], joint: np.ndarray, node: int, parents: Sequence[int]
) -> Table:
    nodes = [shorten(printable(name), _GRAPH_NAME_WIDTH) for name in summary["graph"]["node_names"]]
    names = [[shorten(printable(name), _GRAPH_NAME_WIDTH) for name in outcomes] for outcomes in outcome_names]
    table = conditional_table(joint, node, parents).reshape(-1, len(names[node]))
    given = list(product(*(names[parent] for parent in parents)))
    rows = [[", ".join(combination) or "-", *map(_three, row)] for combination, row in zip(given, table, strict=True)]
    of = ", ".join(nodes[parent] for parent in parents)
    more = f": the first {_MOST_ROWS} of {len(rows)} rows" if len(rows) > _MOST_ROWS else ""
    text = f"p({nodes[node]}{f' | {of}' if of else ''}){more}"
    return Table(text, (of or "", *(f"{nodes[node]} = {name}" for name in names[node])), rows[:_MOST_ROWS])


def _three(value: float) -> str:
    return format_number(float(value), 3)


# The figures of a run on its page: in which section, in which order, with which words.


OutcomePictures = Mapping[str, list[Picture]]

# Figures are drawn at 150 dots per inch; a page has 96.
_SCREEN_SCALE = 96 / 150
_MOST_BYTES = 2**26
_PNG = b"\x89PNG\r\n\x1a\n"


def outcome_pictures(figures: Iterable[Path], summary: Mapping[str, Any]) -> OutcomePictures:
    """By node, the pictures of what distinguishes its outcomes, modality by modality."""
    there = {path.stem: path for path in figures}
    found: dict[str, list[Picture]] = {}
    for (node, modality), file in _files(summary).items():
        path = there.get(f"outcomes_{file}")
        if path is not None:
            alt = printable(f"{modality} for each outcome of {node}, and how the others differ from the first")
            found.setdefault(node, []).append(picture_of(path, "", "", alt))
    return found


def _files(summary: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    return outcome_files(summary["nodes"], summary["modalities"])


def picture_of(path: Path, title: str, text: str, alt: str) -> Picture:
    """The picture itself in base64; its width stands in bytes 16 to 19 of a PNG file.

    Raises:
        ValueError: It is no PNG file, too large for a page, or a link out of the folder of the run.
    """
    try:
        content = read_bytes(path, path.parent.parent, _MOST_BYTES)
    except OSError as error:
        raise ValueError(
            f"{path}: expected a picture, got none that can be read ({reason_of(error)}); remove it"
        ) from error
    if not content.startswith(_PNG):
        raise ValueError(f"{path}: expected a picture in PNG, got something else; remove it")
    width = round(int.from_bytes(content[16:20], "big") * _SCREEN_SCALE)
    return Picture(title, text, alt, base64.b64encode(content).decode("ascii"), width)


# Node by node: what it means, how much of every modality it explains, and what distinguishes its outcomes.


_MOST_OUTCOMES = 12


def node_parts(summary: Summary, outcome_names: Sequence[Sequence[str]], pictures: OutcomePictures) -> list[Part]:
    """A part per node, the first twelve."""
    nodes = list(zip(summary["nodes"], outcome_names, strict=True))[:MOST_NODES]
    return [
        Part(
            shorten(node, _NAME_WIDTH),
            _note(summary, node),
            [_outcomes(outcomes), *_explained(summary, node)],
            pictures=pictures.get(node, []),
        )
        for node, outcomes in nodes
    ]


def _note(summary: Summary, node: str) -> str:
    """That it is a feature, or no more than a coordinate."""
    if len(summary["nodes"]) == 1 and (summary.get("labelling") or {}).get("source", "none") == "none":
        return "numbers the groups"
    if is_named(summary):
        return "feature"
    identified = (summary.get("identifiability") or {}).get("identified_nodes", ())
    return "feature" if node in identified else "not identified: an arbitrary coordinate, no feature"


def _outcomes(names: Sequence[str]) -> str:
    shown = ", ".join(shorten(name, _NAME_WIDTH) for name in names[:_MOST_OUTCOMES])
    more = f" and {len(names) - _MOST_OUTCOMES} more" if len(names) > _MOST_OUTCOMES else ""
    return f"{len(names)} outcomes: {shown}{more}."


def _explained(summary: Summary, node: str) -> list[str]:
    """Shares of variance, the largest first, beside those of the same clusters named at random."""
    found = {
        printable(name): (shares["nodes"][node], shares["random_labelling"][node])
        for name, shares in (summary.get("variance_explained") or {}).items()
        if node in shares["nodes"]
    }
    ordered = sorted(found.items(), key=lambda entry: -entry[1][0])
    listed = ", ".join(f"{name} {_percent(share)} ({_percent(chance)})" for name, (share, chance) in ordered)
    return [f"Variance explained (in brackets: by the same clusters named at random): {listed}."] if listed else []


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# How to cite a run: the paper of the method, and this software.


_PAPER = """\
@misc{walker2023causal,
  title         = {Causal disentanglement of multimodal data},
  author        = {Walker, Elise and Actor, Jonas A. and Martinez, Carianne and Trask, Nathaniel},
  year          = {2023},
  eprint        = {2310.18471},
  archivePrefix = {arXiv}
}"""


def bibtex(versions: Mapping[str, Any]) -> str:
    """Two entries in BibTeX.

    Args:
        versions: Of the libraries, with `causalpima`.
    """
    version = printable(versions.get("causalpima", "unknown"))
    software = f"""\
@software{{causalpima,
  title   = {{causalPIMA: causal disentanglement of multimodal data in Pyro}},
  version = {{{version}}},
  year    = {{2026}},
  note    = {{Implementation of arXiv:2310.18471}}
}}"""
    return f"{_PAPER}\n\n{software}"
