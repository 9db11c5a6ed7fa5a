"""An answer as text for people: probabilities, effects, and always what they rest on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from inference.data.multimodal import Axis
from inference.queries.answer import ModalityAnswer, QueryAnswer
from inference.queries.counterfactual import Counterfactual
from inference.queries.estimates import INTERVAL, Estimate
from inference.queries.linear_model import LinearCounterfactual
from inference.results.text import printable, shorten

__all__ = ["answer_text"]

_WIDTH = 110
_NAME_WIDTH = 24
_MOST_CELLS = 6
_NO_WIDTH = 1e-6


def answer_text(answer: QueryAnswer) -> str:
    """All of an answer, in paragraphs."""
    parts = [
        _heading(answer),
        "\n".join(_wrapped([f"warning: {text}" for text in answer.warnings])),
        "\n".join(_table(answer)),
        "\n".join(_wrapped(list(_open(answer)))),
        "\n".join(_effects(answer)),
        "" if answer.counterfactual is None else "\n".join(_counterfactual(answer.counterfactual, answer)),
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
    means = [f"{answer.labels[key]} {_value(found.mean[key])}" for key in ("observed", "do") if key in answer.labels]
    yield f"{printable(name)}: mean {'; '.join(means)}{unit}"
    for what, difference in found.difference.items():
        yield f"  {what}: {_value(difference)}{unit}"


def _value(found: Estimate) -> str:
    low, high, lower, upper = (float(part.reshape(-1)[0]) for part in found[:4])
    if not np.isfinite(low):
        return "undefined"
    point = f"{low:.4g}" if bool(found.is_identified.all()) else f"between {low:.4g} and {high:.4g}"
    return f"{point} ({_interval(lower, upper, '.4g')})"


def _interval(lower: float, upper: float, form: str) -> str:
    """An interval of no width is none: nothing of p(N) enters, and the means of cells count as known."""
    if upper - lower <= _NO_WIDTH * max(abs(lower), abs(upper)):
        return "no interval: means of cells count as known"
    return f"{INTERVAL:.0%} {lower:{form}} to {upper:{form}}"


def _array(name: str, found: ModalityAnswer) -> Iterator[str]:
    unit = f" {found.unit}" if found.unit else ""
    if not found.difference:
        mean = found.mean["observed"]
        yield f"{printable(name)}: mean from {mean.low.min():.4g} to {mean.high.max():.4g}{unit}"
    for what, difference in found.difference.items():
        yield f"{printable(name)}, {what}: {_largest(difference, unit, found.axis)}"


def _largest(found: Estimate, unit: str, axis: Axis | None) -> str:
    size = np.fmax(np.abs(found.low), np.abs(found.high))
    if not np.isfinite(size).any():
        return "undefined"
    place = np.unravel_index(int(np.nanargmax(size)), size.shape)
    low, high = float(found.low[place]), float(found.high[place])
    point = f"{low:+.4g}" if bool(found.is_identified[place]) else f"between {low:+.4g} and {high:+.4g}"
    interval = _interval(float(found.lower[place]), float(found.upper[place]), "+.4g")
    return f"largest change {point}{unit} ({interval}), {_where(tuple(map(int, place)), axis)}"


def _where(place: Sequence[int], axis: Axis | None) -> str:
    """`at strain 4.483 %` on a curve, the number of the element elsewhere."""
    if axis is None or len(place) != 1:
        return f"in element {', '.join(map(str, place))}"
    unit = f" {axis.unit}" if axis.unit else ""
    return f"at {printable(axis.name) or 'position'} {float(axis.values[place[0]]):.4g}{unit}"


def _counterfactual(found: Counterfactual, answer: QueryAnswer) -> Iterator[str]:
    factual = "; ".join(f"{_cell(cell, answer)} ({weight:.2f})" for cell, weight in found.factual.items())
    yield from _wrapped([f"Sample {printable(found.name)} as it is: {factual}"])
    yield f"Had it been {answer.labels['do']}, bounds of what is not identified by any graph:"
    for node, (lower, upper) in found.nodes.items():
        bounds = zip(answer.outcomes[node], lower, upper, strict=True)
        told = ", ".join(f"{printable(outcome)} {_bounds(low, high)}" for outcome, low, high in bounds)
        yield f"  {printable(node)}: {told}"
    yield "What the model would draw there with the residual of the sample kept (an assumption, no bound):"
    for cell in found.cells[:_MOST_CELLS]:
        yield f"  {_cell(cell.cell, answer)}: {_bounds(cell.lower, cell.upper)}{_scalars(cell.means)}"
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
            yield f"  {printable(name)}: {float(factual.reshape(-1)[0]):.4g} -> {float(changed.reshape(-1)[0]):.4g}"


def _cell(cell: Sequence[str], answer: QueryAnswer) -> str:
    return ", ".join(f"{printable(node)}={printable(name)}" for node, name in zip(answer.outcomes, cell, strict=True))


def _bounds(lower: float, upper: float) -> str:
    return f"{lower:.2f}" if upper - lower < 5e-3 else f"{lower:.2f} to {upper:.2f}"


def _scalars(means: dict[str, np.ndarray]) -> str:
    """Values of modalities of one number; the others stand in the JSON file."""
    told = [f"{printable(name)} {float(mean.reshape(-1)[0]):.4g}" for name, mean in means.items() if mean.size == 1]
    return f"; {', '.join(told)}" if told else ""
