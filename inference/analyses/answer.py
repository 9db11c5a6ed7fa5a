"""The answer to a question, and its plain form."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from causalpima.inference.analyses.counterfactual import Counterfactual, DrawnCell, LinearCounterfactual
from causalpima.inference.analyses.query_sampling import INTERVAL, Estimate
from causalpima.inference.analyses.scenarios import GraphSet, drawn_graph
from causalpima.inference.data.multimodal import Axis
from causalpima.inference.findings.linear_model import unlike_labels_sentence
from causalpima.inference.findings.meaning import labels_in_words
from causalpima.inference.store.files import file_attributes, to_json, write_bytes
from causalpima.inference.store.text import format_number, format_value, printable, shorten

__all__ = [
    "FEW_SAMPLES",
    "ModalityAnswer",
    "QueryAnswer",
    "answer_text",
    "assumptions_of",
    "counterfactual_assumptions",
    "draws_tree",
    "warnings_of",
    "write_draws",
]


_MOST_DRAWN = 100


@dataclass(frozen=True)
class ModalityAnswer:
    """One modality in the units of the data.

    Attributes:
        kind: `image`, `curve` or `vector`.
        unit: Unit of the values; empty if there is none.
        axis: Positions of a curve, or None.
        is_categorical: Whether values are probabilities of categories, the last axis.
        mean: Mean of every element by scenario, `[*event]`; of categories their probabilities, `[*event, K]`.
        difference: Differences of means by what is subtracted from what.
        answers: Means of what is asked for every different answer of the graphs, `[A, *event]`.
    """

    kind: str
    unit: str
    axis: Axis | None
    is_categorical: bool
    mean: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]
    answers: np.ndarray


@dataclass(frozen=True)
class QueryAnswer:
    """What would happen.

    Attributes:
        do: Outcome by node that is set.
        given: Outcome by node that is conditioned on.
        outcomes: Names of the outcomes of every node.
        graphs: The graphs that it is answered for.
        node_probabilities: Per node, by scenario: probabilities of its outcomes. `observed`; where something is set
            also as it is seen where the nodes happen to have these outcomes, and under the intervention.
        modalities: Per modality.
        answers: Numbers of the graphs that give the same answer, those of the most weight first, `[A]`.
        labels: Names of the scenarios: `observed`, `seen`, `do`.
        assumptions: What it rests on.
        notes: What is to be known besides.
        counterfactual: Of one sample, or None.
        draws: Draws under the intervention, or None.
        seed: Of draws and intervals.
        warnings: What makes numbers of it worth little; said before them.
    """

    do: Mapping[str, str]
    given: Mapping[str, str]
    outcomes: Mapping[str, tuple[str, ...]]
    graphs: GraphSet
    node_probabilities: Mapping[str, Mapping[str, Estimate]]
    modalities: Mapping[str, ModalityAnswer]
    answers: tuple[tuple[int, ...], ...]
    labels: Mapping[str, str]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    counterfactual: Counterfactual | None = None
    draws: xr.Dataset | None = field(default=None, repr=False, compare=False)
    seed: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def is_identified(self) -> bool:
        """Whether all graphs agree on every probability of a node."""
        found = [estimate for of_node in self.node_probabilities.values() for estimate in of_node.values()]
        return all(bool(estimate.is_identified.all()) for estimate in found)

    def to_plain(self) -> dict[str, Any]:
        """Nested dicts, lists and numbers (docs/query.md)."""
        return {
            "do": dict(self.do),
            "given": dict(self.given),
            "warnings": list(self.warnings),
            "is_identified": self.is_identified,
            "graphs": self._graphs(),
            "interval": INTERVAL,
            "node_probabilities": {node: self._outcomes(node) for node in self.outcomes},
            "modalities": {name: _modality(found) for name, found in self.modalities.items()},
            "counterfactual": None if self.counterfactual is None else _counterfactual_entry(self.counterfactual, self),
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
            "seed": self.seed,
        }

    def _graphs(self) -> dict[str, Any]:
        names = tuple(self.outcomes)
        drawn = zip(self.graphs.dags[:_MOST_DRAWN], self.graphs.weights.tolist(), strict=False)
        return {
            "basis": self.graphs.basis,
            "sentence": self.graphs.sentence,
            "n_graphs": len(self.graphs.dags),
            "graphs": [{"edges": drawn_graph(dag, names), "weight": weight} for dag, weight in drawn],
        }

    def _outcomes(self, node: str) -> dict[str, Any]:
        return {
            outcome: {scenario: _number(found, place) for scenario, found in self.node_probabilities[node].items()}
            for place, outcome in enumerate(self.outcomes[node])
        }


def _number(found: Estimate, place: int) -> dict[str, Any]:
    return {key: (None if value is None else value[place]) for key, value in _estimate(found).items()}


def _estimate(found: Estimate) -> dict[str, Any]:
    """`value`, null where graphs disagree; the ends of the interval over the graphs, and of that of the sampling."""
    return {
        "value": np.asarray(found.value).tolist(),
        "low": np.asarray(found.low).tolist(),
        "high": np.asarray(found.high).tolist(),
        "lower": np.asarray(found.lower).tolist(),
        "upper": np.asarray(found.upper).tolist(),
    }


def _modality(found: ModalityAnswer) -> dict[str, Any]:
    return {
        "unit": found.unit,
        "mean": {scenario: _estimate(mean) for scenario, mean in found.mean.items()},
        "difference": {what: _estimate(difference) for what, difference in found.difference.items()},
    }


def _counterfactual_entry(found: Counterfactual, answer: QueryAnswer) -> dict[str, Any]:
    return {
        "sample": found.sample,
        "name": found.name,
        "factual": [{"cell": list(cell), "probability": weight} for cell, weight in found.factual.items()],
        "is_sharp": found.is_sharp,
        "node_bounds": {
            node: {
                outcome: {"lower": float(lower[place]), "upper": float(upper[place])}
                for place, outcome in enumerate(answer.outcomes[node])
            }
            for node, (lower, upper) in found.nodes.items()
        },
        "residual_kept": {
            "factual": {name: mean.tolist() for name, mean in found.factual_means.items()},
            "cells": [
                {
                    "cell": list(cell.cell),
                    "lower": cell.lower,
                    "upper": cell.upper,
                    "means": {name: mean.tolist() for name, mean in cell.means.items()},
                }
                for cell in found.cells
            ],
        },
        "linear_model": None if found.linear is None else found.linear.to_plain(),
    }


# An answer as text for people: probabilities, effects, and always what they rest on.


_WIDTH = 110
_NAME_WIDTH = 24
_MOST_CELLS = 6
_NO_WIDTH, _ULPS = 1e-6, 8


def answer_text(answer: QueryAnswer) -> str:
    """All of an answer, in paragraphs."""
    parts = [
        _heading(answer),
        "\n".join(_wrapped([f"warning: {text}" for text in answer.warnings])),
        "\n".join(_table(answer)),
        "\n".join(_wrapped(list(_open(answer)))),
        "\n".join(_effects(answer)),
        "" if answer.counterfactual is None else "\n".join(_counterfactual_sentences(answer.counterfactual, answer)),
        "\n".join(["This rests on:", *_wrapped([f"- {text}" for text in answer.assumptions])]),
        "\n".join(_wrapped([f"note: {text}" for text in answer.notes])),
    ]
    return "\n\n".join(part for part in parts if part)


def _wrapped(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(text, _WIDTH, subsequent_indent="  ")]


def _heading(answer: QueryAnswer) -> str:
    given = ", ".join(f"{printable(node)}={printable(outcome)}" for node, outcome in answer.given.items())
    asked = ", ".join(text for text in (answer.labels.get("do", ""), given) if text)
    return f"p(N | {asked})"


def _table(answer: QueryAnswer) -> Iterator[str]:
    """Probabilities of all outcomes, a column per scenario."""
    keys = [key for key in ("observed", "seen", "do") if key in answer.labels]
    rows = [["node", "outcome", *(answer.labels[key] for key in keys)]]
    for node, outcomes in answer.outcomes.items():
        found = answer.node_probabilities[node]
        for place, outcome in enumerate(outcomes):
            name = shorten(node, _NAME_WIDTH) if place == 0 else ""
            rows.append([name, shorten(outcome, _NAME_WIDTH), *(_probability(found[key], place) for key in keys)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
    yield f"In brackets: {INTERVAL:.0%} interval, how far the samples of the fit determine it; a..b: over the graphs."


def _probability(found: Estimate, place: int) -> str:
    low, high, lower, upper = (float(part[place]) for part in found[:4])
    if not np.isfinite(low):
        return "undefined"
    point = f"{low:.3f}" if bool(found.is_identified[place]) else f"{low:.3f}..{high:.3f}"
    return point if upper - lower < 5e-4 else f"{point} ({lower:.3f}-{upper:.3f})"


def _open(answer: QueryAnswer) -> Iterator[str]:
    """What the graphs do not agree on."""
    if "do" not in answer.labels:
        return
    count = len(answer.graphs.dags)
    for node, outcomes in answer.outcomes.items():
        found = answer.node_probabilities[node]["do"]
        if not found.is_identified.all() and np.isfinite(found.low).all():
            # Of two outcomes the second says it all.
            for place in range(len(outcomes) - 1, 0, -1) if len(outcomes) == 2 else range(len(outcomes)):
                between = f"between {found.low[place]:.2f} and {found.high[place]:.2f} over {count} graphs"
                yield f"{printable(node)}={printable(outcomes[place])}: not identified: {between}"


def _effects(answer: QueryAnswer) -> Iterator[str]:
    for name, found in answer.modalities.items():
        if found.mean["observed"].low.size == 1:
            yield from _wrapped(list(_scalar(name, found, answer)))
        else:
            yield from _wrapped(list(_array(name, found)))


def _scalar(name: str, found: ModalityAnswer, answer: QueryAnswer) -> Iterator[str]:
    unit = f" {found.unit}" if found.unit else ""
    told = {answer.labels[key]: found.mean[key] for key in ("observed", "do") if key in answer.labels}
    apart = float(np.ptp([part.reshape(-1)[0] for mean in told.values() for part in mean[:4]]))
    means = [f"{label} {_value(mean, apart)}" for label, mean in told.items()]
    yield f"{printable(name)}: mean {'; '.join(means)}{unit}"
    for what, difference in found.difference.items():
        yield f"  {what}: {_value(difference)}{unit}"


def _value(found: Estimate, apart: float = 0.0) -> str:
    """A number with its interval, beside numbers that are `apart`."""
    numbers = [float(part.reshape(-1)[0]) for part in found[:4]]
    if not np.isfinite(numbers[0]):
        return "undefined"
    low, high, lower, upper = (format_value(number, apart=apart) for number in numbers)
    point = low if bool(found.is_identified.all()) else f"between {low} and {high}"
    return f"{point} ({_interval(numbers[2], numbers[3], (lower, upper), apart)})"


def _interval(lower: float, upper: float, shown: tuple[str, str], apart: float = 0.0) -> str:
    """An interval of no width is none: nothing of p(N) enters, and the means of cells count as known."""
    size = max(abs(lower), abs(upper))
    if upper - lower <= max(_NO_WIDTH * (apart or size), _ULPS * np.spacing(size)):
        return "no interval: means of cells count as known"
    return f"{INTERVAL:.0%} {shown[0]} to {shown[1]}"


def _array(name: str, found: ModalityAnswer) -> Iterator[str]:
    unit = f" {found.unit}" if found.unit else ""
    if not found.difference:
        mean = found.mean["observed"]
        low, high = float(mean.low.min()), float(mean.high.max())
        low_and_high = (format_value(number, apart=high - low) for number in (low, high))
        yield f"{printable(name)}: mean from {' to '.join(low_and_high)}{unit}"
    for what, difference in found.difference.items():
        yield f"{printable(name)}, {what}: {_largest(difference, unit, found.axis)}"


def _largest(found: Estimate, unit: str, axis: Axis | None) -> str:
    size = np.fmax(np.abs(found.low), np.abs(found.high))
    if not np.isfinite(size).any():
        return "undefined"
    place = np.unravel_index(int(np.nanargmax(size)), size.shape)
    low, high = float(found.low[place]), float(found.high[place])
    point = f"{low:+.4g}" if bool(found.is_identified[place]) else f"between {low:+.4g} and {high:+.4g}"
    lower, upper = float(found.lower[place]), float(found.upper[place])
    interval = _interval(lower, upper, (f"{lower:+.4g}", f"{upper:+.4g}"))
    return f"largest change {point}{unit} ({interval}), {_where(tuple(map(int, place)), axis)}"


def _where(place: Sequence[int], axis: Axis | None) -> str:
    """`at strain 4.483 %` on a curve, the number of the element elsewhere."""
    if axis is None or len(place) != 1:
        return f"in element {', '.join(map(str, place))}"
    unit = f" {axis.unit}" if axis.unit else ""
    position = format_value(float(axis.values[place[0]]), apart=float(np.ptp(axis.values)))
    return f"at {printable(axis.name) or 'position'} {position}{unit}"


def _counterfactual_sentences(found: Counterfactual, answer: QueryAnswer) -> Iterator[str]:
    factual = "; ".join(f"{_cell(cell, answer)} ({weight:.2f})" for cell, weight in found.factual.items())
    yield from _wrapped([f"Sample {printable(found.name)} as it is: {factual}"])
    yield f"Had it been {answer.labels['do']}, bounds of what is not identified by any graph:"
    for node, (lower, upper) in found.nodes.items():
        bounds = zip(answer.outcomes[node], lower, upper, strict=True)
        told = ", ".join(f"{printable(outcome)} {_bounds(low, high)}" for outcome, low, high in bounds)
        yield f"  {printable(node)}: {told}"
    yield "What the model would draw there with the residual of the sample kept (an assumption, no bound):"
    for cell in found.cells[:_MOST_CELLS]:
        yield f"  {_cell(cell.cell, answer)}: {_bounds(cell.lower, cell.upper)}{_scalars(cell, found.cells)}"
    yield from () if found.linear is None else _linear(found.linear, answer)


def _linear(found: LinearCounterfactual, answer: QueryAnswer) -> Iterator[str]:
    """By the linear model: nodes as numbers between their outcomes, and modalities of one number."""
    yield "By the linear model (model.prior=linear_scm), as it is -> as it would have been (an assumption, no bound):"
    for node, (before, after) in found.levels.items():
        names = ", ".join(f"{code} {printable(name)}" for code, name in enumerate(answer.outcomes[node]))
        is_set = f"set to {printable(answer.do[node])}; read off its block: " if node in found.set_to else ""
        yield f"  {printable(node)}: {is_set}{before:.2f} -> {after:.2f} ({names})"
    for name, (factual, changed) in found.means.items():
        if factual.size == 1:
            pair = [float(values.reshape(-1)[0]) for values in (factual, changed)]
            yield f"  {printable(name)}: {' -> '.join(format_value(x, apart=abs(pair[1] - pair[0])) for x in pair)}"


def _cell(cell: Sequence[str], answer: QueryAnswer) -> str:
    return ", ".join(f"{printable(node)}={printable(name)}" for node, name in zip(answer.outcomes, cell, strict=True))


def _bounds(lower: float, upper: float) -> str:
    return f"{lower:.2f}" if upper - lower < 5e-3 else f"{lower:.2f} to {upper:.2f}"


def _scalars(cell: DrawnCell, cells: Sequence[DrawnCell]) -> str:
    """Values of modalities of one number, among those of other cells; the others stand in the JSON file."""
    told = []
    for name, mean in cell.means.items():
        if mean.size == 1:
            apart = float(np.ptp([other.means[name] for other in cells]))
            told.append(f"{printable(name)} {format_value(float(mean.reshape(-1)[0]), apart=apart)}")
    return f"; {', '.join(told)}" if told else ""


# What an answer rests on, and what it is not worth, sentence by sentence: printed with every one of them.


FEW_SAMPLES = 5.0

_SOURCES = {
    "names": "names that a person gave to the clusters",
    "environments": "interventions that were declared",
    "read_outs": "the declaration that effects add up in the read-outs, which cannot be tested",
    "independence": "the declaration that nodes are independent",
    "mask": "the mask that says which modality sees which node",
}


def assumptions_of(summary: Mapping[str, Any], graphs: GraphSet | None, thinnest: float) -> list[str]:
    """Of a question: what the nodes mean, and if something is set also what the graph has to be.

    Args:
        summary: Of the run.
        graphs: The graphs; None where nothing is set.
        thinnest: Expected number of samples behind the thinnest row of a table that matters.
    """
    found = [_labelling(summary)]
    if graphs is not None:
        found += [
            "no hidden common cause: whatever acts upon two nodes is a node",
            "no selection: samples came into the data whatever their nodes",
            graphs.sentence,
            _positivity(thinnest),
        ]
    return found


def _labelling(summary: Mapping[str, Any]) -> str:
    labelling = summary.get("labelling") or {}
    source = labelling.get("source", "none")
    details = {"n_labelled": "some", **(labelling.get("details") or {})}
    words = labels_in_words(details) if source == "labels" else _SOURCES.get(source, "what was declared of them")
    nodes = ", ".join(map(printable, summary["graph"]["node_names"]))
    return f"the labelling: the nodes ({nodes}) mean what they are called, by {words}"


def _positivity(thinnest: float) -> str:
    few = ", which is few" if thinnest < FEW_SAMPLES else ""
    return (
        "positivity: every combination of causes that matters occurs; the thinnest row of a table rests on "
        f"{format_number(thinnest, 1)} expected samples{few}"
    )


def counterfactual_assumptions(is_sharp: bool) -> Iterator[str]:
    """What counterfactuals rest on besides: the first is of the bounds, the second of the modalities alone."""
    sharpness = "sharp" if is_sharp else "valid, true ones may be narrower"
    yield (
        "bounds of nodes: nothing more; they hold whatever the response functions of the nodes are "
        f"({sharpness}; the tables count as known)"
    )
    yield (
        "modalities, in addition: the sample keeps its standardised residual of Z within its cell; no data can tell "
        "whether it would, so this is what the model would draw, no bound"
    )


def warnings_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """What the fit warned of and an answer has to say again, before its numbers.

    Args:
        summary: Of the run.
    """
    if unlike := unlike_labels_sentence(summary):
        yield f"linear model (model.prior=linear_scm): {unlike}"


# The draws of an answer as a netCDF file.


def draws_tree(answer: QueryAnswer) -> xr.DataTree:
    """The draws as group `predictions` of the ArviZ schema; what was asked, warned of and assumed is in the attributes.

    Raises:
        ValueError: The answer holds no draws.
    """
    if answer.draws is None:
        raise ValueError("draws: expected an answer with draws, got one without; ask with sampled=True")
    tree = xr.DataTree.from_dict({"predictions": answer.draws})
    tree.attrs = {
        **file_attributes(),
        "do": to_json(dict(answer.do), indent=None),
        "given": to_json(dict(answer.given), indent=None),
        "warnings": to_json(list(answer.warnings), indent=None),
        "assumptions": to_json(list(answer.assumptions), indent=None),
        "outcomes": to_json({node: list(names) for node, names in answer.outcomes.items()}, indent=None),
        "seed": answer.seed,
    }
    return tree


def write_draws(answer: QueryAnswer, path: Path | str) -> None:
    """Write `draws_tree(answer)` as netCDF 4, whole or not at all.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    write_bytes(path, bytes(draws_tree(answer).to_netcdf(engine="h5netcdf")))
