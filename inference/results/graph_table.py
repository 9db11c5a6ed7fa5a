"""A posterior over graphs for people: in words, then every pair of nodes, then how much depends on the score."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import inf
from typing import Any

import numpy as np

from inference.data.categories import ROWS_PER_CELL
from inference.results.class_findings import Signs, drawn_class
from inference.results.declared_arrows import arrow_notes, declared_sentence, is_declared
from inference.results.posterior_findings import short_pairs
from inference.results.text import format_number, printable, shorten

__all__ = ["graph_table"]

Posterior = Mapping[str, Any]

_WIDTH = 80
_NAME_WIDTH = 14
_PAIR_WIDTH = 2 * _NAME_WIDTH + 4
_COLUMN = 9
_MOST_CLASSES = 8
_MOST_PAIRS = 45

_ASSUMPTIONS = "Assumed: no hidden common cause, no selection, and that the clusters are what their names say."
_ASSUMPTIONS_OF_TABLES = (
    "Assumed: no common cause of two columns that is no column itself, and no selection of rows by them."
)
_GOOD_R_HAT = 1.05
_FEW_DRAWS = 100


def graph_table(found: Posterior) -> str:
    """Plain text of at most 80 columns.

    Args:
        found: As `inference.graph`'s JSON has it.
    """
    assumptions = _ASSUMPTIONS_OF_TABLES if "levels" in found else _ASSUMPTIONS
    classes = [] if short_pairs(found) else _classes(found)
    tables = [] if _says_nothing(found) else [_pairs(found), classes, _sensitivity(found)]
    parts = [_words(found), *tables, _wrapped(assumptions)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _says_nothing(found: Posterior) -> bool:
    n_nodes = len(found["nodes"])
    return n_nodes > 1 and len(short_pairs(found)) == n_nodes * (n_nodes - 1) // 2


def _words(found: Posterior) -> list[str]:
    return [line for sentence in _sentences(found) for line in _wrapped(sentence)]


def _sentences(found: Posterior) -> Iterator[str]:
    if not found.get("is_named", True):
        yield (
            f"Warning: the clusters are unnamed. This is the posterior under one of {_labellings(found)} labellings "
            "that fit equally well; under another it is another."
        )
    n, independent = found["n_samples"], found["n_independent"]
    groups = "" if n == independent else f", which count as {independent} groups"
    yield f"Posterior over graphs by {_score(found)} from {n} samples{groups}; {_prior(found)}; {found['method']}."
    if short_pairs(found):
        yield _shortage(found)
    else:
        drawn = drawn_class(found["classes"][0]["cpdag"], found["nodes"], Signs())
        yield f"Most probable class of graphs: {drawn} ({_two(found['classes'][0]['probability'])})."
        yield from _best_graph(found, drawn)
    yield from _declared(found)
    yield from _information(found)
    yield from _draws(found)


def _shortage(found: Posterior) -> str:
    """Which pairs the samples say nothing of; nor do they of whole graphs then."""
    pairs = [" and ".join(map(printable, pair)) for pair in found["too_few_samples"]]
    more = ", ..." if len(pairs) > _MOST_CLASSES else ""
    listed = "any two of them" if _says_nothing(found) else f"{'; '.join(pairs[:_MOST_CLASSES])}{more}"
    return (
        f"Warning: {found['n_independent']} samples are fewer than {ROWS_PER_CELL} for each combination of the levels "
        f"of {listed}. Whether these are joined would be the word of the score, not of the data, so that neither they "
        "nor whole graphs are shown: put levels together, or take more samples."
    )


def _best_graph(found: Posterior, drawn: str) -> Iterator[str]:
    """The class of the best graph, where the most probable one is another: it may have more graphs."""
    best = drawn_class(found["cpdag"], found["nodes"], Signs())
    if best != drawn:
        yield f"The class of the one graph with the best score is another: {best}."


def _declared(found: Posterior) -> Iterator[str]:
    """What was declared, and which arrows of the most probable class are there for that alone."""
    if is_declared(found):
        notes = [note for note in arrow_notes(found["classes"][0]["cpdag"], found["nodes"]) if "declared" in note]
        yield " ".join([declared_sentence(found), *(f"{note[0].upper()}{note[1:]}." for note in notes)])


def _draws(found: Posterior) -> Iterator[str]:
    about = found.get("diagnostics") or {}
    if "chains" in about:
        yield from _chains(about)
    elif "draws" in about:
        yield f"Edges are summed over all graphs; classes come from {about['draws']} independent draws of graphs."


def _chains(about: Mapping[str, Any]) -> Iterator[str]:
    yield f"{about['chains']} chains of {about['draws']} draws."
    if about["ess"] is not None:
        r_hat = inf if about["r_hat"] is None else about["r_hat"]  # files have no infinity
        doubtful = r_hat > _GOOD_R_HAT or about["ess"] < _FEW_DRAWS
        yield (
            ("Warning: the chains do not agree well; take the numbers as rough. " if doubtful else "")
            + f"Of edges and score, the largest R-hat is {r_hat:.3f}, the smallest effective number of draws "
            f"{about['ess']:.0f}."
        )


def _labellings(found: Posterior) -> str:
    count = found.get("equivalent_labellings")
    return "many" if count is None else str(count)


def _information(found: Posterior) -> Iterator[str]:
    share = (found.get("diagnostics") or {}).get("information_share")
    if share is not None and share < 0.995:
        yield (
            f"Clusters overlap: their counts stand for {100 * share:.0f} % of the samples' information, and graphs are "
            "scored by these counts, not by the likelihood of the mixture."
        )


def _score(found: Posterior) -> str:
    size = found["equivalent_sample_size"]
    return "BIC" if size is None else f"BDeu (equivalent sample size {size:g})"


def _prior(found: Posterior) -> str:
    known = [*found["knowledge"]["forbidden"], *found["knowledge"]["required"]]
    which = "the graphs that agree with what is known" if known else "all graphs"
    odds = found.get("edge_prior") or 0.0
    return f"{which} alike beforehand" if not odds else f"{which}, log-odds {odds:g} for every edge beforehand"


def _pairs(found: Posterior) -> list[str]:
    """A row per pair, the most probably joined first."""
    joined = np.array(found["adjacency_probability"])
    pairs = sorted(combinations(range(len(joined)), 2), key=lambda pair: -joined[pair])
    rows = [_pair_row(found, i, j) for i, j in pairs[:_MOST_PAIRS]]
    more = [f"and {len(pairs) - _MOST_PAIRS} pairs that are less probable"] if len(pairs) > _MOST_PAIRS else []
    head = _row("probability of a pair", ("joined", "->", "<-", "sure ->", "sure <-"))
    told = " that agree with what was declared" if is_declared(found) else ""
    note = f"sure: directed that way in all graphs of the class{told}; the rest of -> and <- is the prior's."
    note += " -: too few samples to say." if short_pairs(found) else ""
    return [head, *rows, *more, *_wrapped(note)] if rows else []


def _pair_row(found: Posterior, i: int, j: int) -> str:
    edge, sure = found["edge_probability"], found["compelled_probability"]
    numbers = (found["adjacency_probability"][i][j], edge[i][j], edge[j][i], sure[i][j], sure[j][i])
    return _row(_pair(found, i, j), ["-"] * len(numbers) if _is_short(found, i, j) else [_two(x) for x in numbers])


def _is_short(found: Posterior, i: int, j: int) -> bool:
    return {found["nodes"][i], found["nodes"][j]} in short_pairs(found)


def _classes(found: Posterior) -> list[str]:
    listed, total = found["classes"], found.get("n_classes", len(found["classes"]))
    lines = [
        f"  {_two(entry['probability'])}  {line}" if first else f"        {line}"
        for entry in listed[:_MOST_CLASSES]
        for first, line in _flagged(_wrapped(drawn_class(entry["cpdag"], found["nodes"], Signs()), _WIDTH - 8))
    ]
    plural = "class carries" if total == 1 else "classes carry"
    more = [f"  and {total - _MOST_CLASSES} more"] if total > _MOST_CLASSES else []
    return [f"{total} {plural} 95 % of the probability:", *lines, *more]


def _flagged(lines: Sequence[str]) -> list[tuple[bool, str]]:
    return [(number == 0, line) for number, line in enumerate(lines)]


def _sensitivity(found: Posterior) -> list[str]:
    compared = found.get("sensitivity")
    if not compared:
        return []
    names, tables = list(compared["scores"]), [np.array(t["edge_probability"]) for t in compared["scores"].values()]
    every = combinations(range(len(found["nodes"])), 2)
    pairs = [(i, j) for i, j in every if not _is_short(found, i, j)][:_MOST_PAIRS]
    rows = [_row(_pair(found, i, j), [_two(table[i, j] + table[j, i]) for table in tables]) for i, j in pairs]
    return [
        _row("joined, by another score", names),
        *rows,
        *_wrapped(_changes([pair for pair in compared["changes"] if set(pair) not in short_pairs(found)])),
    ]


def _changes(changes: Sequence[Sequence[str]]) -> str:
    if not changes:
        return "The verdict on every pair (no edge, joined, directed) is the same by all of them."
    listed = "; ".join(" and ".join(map(printable, pair)) for pair in changes)
    return f"Warning: the verdict depends on the score for {listed}."


def _pair(found: Posterior, i: int, j: int) -> str:
    first, second = (shorten(printable(found["nodes"][node]), _NAME_WIDTH) for node in (i, j))
    return f"{first}, {second}"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{_PAIR_WIDTH}}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells)


def _two(value: float) -> str:
    return format_number(float(value), 2)


def _wrapped(text: str, width: int = _WIDTH) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
