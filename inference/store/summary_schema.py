"""What stands in `summary.json`: the kinds of its entries, as every reader counts on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = [
    "MissingEntryError",
    "check_facts",
    "checked_summary",
]


_MOST_NODES, _MOST_NAMES = 64, 10_000


class _Optional(NamedTuple):
    """An entry that may be null; every entry may be missing, which is told to who asks for it."""

    kind: Any


class _Or(NamedTuple):
    """One of several kinds."""

    kinds: tuple[Any, ...]


class _Names(NamedTuple):
    """A mapping of whatever names to one kind."""

    kind: Any


class _Count(NamedTuple):
    """A whole number of at least so much."""

    least: int = 0


NUMBER = _Or((float, int, None))
"""A number; null where it is NaN or infinite."""
_TABLE = [[NUMBER]]
_NUMBERS = _Optional(_Names(NUMBER))

_MODALITY = {
    "shape": [_Count(1)],
    "present": _Count(),
    "kind": _Optional(str),
    "unit": _Optional(str),
    "likelihood": _Optional(str),
    "transform": _Optional(str),
    "missing_elements": _Optional(NUMBER),
    "decoder_variance": _Optional({"training": _Optional(NUMBER), "reported": _Optional(NUMBER)}),
    "axis": _Optional({"name": _Optional(str), "unit": _Optional(str)}),
    "physics": _Optional(
        _Names(
            _Names(
                {
                    "value": NUMBER,
                    "standard_error": NUMBER,
                    "lower": NUMBER,
                    "upper": NUMBER,
                    "unit": _Optional(str),
                    "status": str,
                    "effective_samples": NUMBER,
                }
            )
        )
    ),
}
_ALWAYS, _OF_RESULTS = ("status", "dataset", "nodes", "modalities"), ("clusters", "graph")
_HELD_OUT = {
    "per_sample": NUMBER,
    "standard_error": _Optional(NUMBER),
    "n_samples": _Optional(_Count()),
    "n_draws": _Optional(_Count()),
    "split": _Optional(str),
    "collapsed_bound": _Optional(Mapping),
}
_EDGE_TABLES = ("edge_probability", "adjacency_probability", "compelled_probability")
_POSTERIOR = {
    "nodes": [str],
    **dict.fromkeys(_EDGE_TABLES, _TABLE),
    "classes": _Optional([{"cpdag": [[int]], "probability": NUMBER}]),
    "cpdag": _Optional([[int]]),
    "score": _Optional(_Or((str, Mapping))),
}
_GRAPH = {
    "node_names": [str],
    "edge_strength": _TABLE,
    "adjacency": _Optional(_TABLE),
    "log_joint": _Optional(list),
    "mutual_information": _Optional(_TABLE),
    "temperature": _Optional(NUMBER),
    "equivalent_labellings": _Optional(int),
    "given": _Optional(list),
    "variational": _Optional({"edge_probability": _TABLE, "prior": _Optional(Mapping)}),
    "linear_scm": _Optional(Mapping),
    "equivalence_class": _Optional({"cpdag": [[int]], "node_names": [str], "gap_nats": _Optional(NUMBER)}),
    "posterior": _Optional(_POSTERIOR),
    "posthoc": _Optional(Mapping),
    "posthoc_left_out": _Optional(_Names(str)),
}
_IDENTIFIABILITY = {
    "identified_nodes": [str],
    "is_named": bool,
    "equivalent_labellings": _Optional(int),
    "at_least": _Optional(int),
    "reason": _Optional(str),
    "suggestions": _Optional(list),
    "before": _Optional(Mapping),
}
_CALIBRATION = {
    **dict.fromkeys(("ece", "ece_equal_mass", "ece_if_calibrated", "ece_95_if_calibrated"), NUMBER),
    "confidence": [NUMBER],
    "accuracy": [NUMBER],
    "count": [_Count()],
}
_FACTOR = {
    "n_samples": _Count(),
    "n_levels": _Count(),
    "guess": _Or((float, int)),
    **dict.fromkeys(("accuracy", "cluster_accuracy", "nmi", "ari"), NUMBER),
    "calibration": _Optional(_CALIBRATION),
}
_EVALUATION = {
    "factors": _Optional(_Names(_FACTOR)),
    "cluster_accuracy": _Optional(NUMBER),
    "nmi": _Optional(NUMBER),
    "ari": _Optional(NUMBER),
    "node_accuracy": _NUMBERS,
    "node_accuracy_mean": _Optional(NUMBER),
    "node_accuracy_worst": _Optional(NUMBER),
    "random_labelling_baseline": _Optional(Mapping),
    "named_accuracy": _NUMBERS,
    "named_accuracy_worst": _Optional(NUMBER),
    "bayes_ceiling": _Optional(_Or((float, int, Mapping))),
    "split": _Optional(str),
    "n_samples": _Optional(_Count()),
    "assignment": _Optional(_Names(_Optional(str))),
    "node_names": _Optional([str]),
    "factor_levels": _Optional(_Names([str])),
    "node_factor_nmi": _Optional(_TABLE),
    "node_factor_accuracy": _Optional(_TABLE),
    "disentanglement": _Optional(Mapping),
    "calibration": _Optional(_CALIBRATION),
    "graph": _Optional(Mapping),
}
_SUMMARY = {
    "dataset": str,
    "seed": int,
    "status": str,
    "n_samples": _Count(),
    "modalities": _Names(_MODALITY),
    "nodes": _Names(_Count(1)),
    "epochs": _Optional(_Count()),
    "seconds": _Optional(_Names(NUMBER)),
    "versions": _Optional(_Names(str)),
    "reason": _Optional(str),
    "objective": {
        "name": str,
        "value": NUMBER,
        "per_sample": NUMBER,
        "split": _Optional(str),
        "kl_weight": _Optional(NUMBER),
        "latent_prior": _Optional(Mapping),
    },
    "clusters": {
        "n_requested": _Count(1),
        "n_occupied": _Count(),
        "effective_number": NUMBER,
        "sizes": [_Count()],
        "n_groups": _Optional([_Count()]),
        "entropy": _Optional(NUMBER),
    },
    "labelling": _Optional(
        {"source": str, "named_nodes": _Optional([str]), "details": _Optional(Mapping), "joint": _Optional(list)}
    ),
    "identifiability": _Optional(_IDENTIFIABILITY),
    "graph": _GRAPH,
    "variance_explained": _Optional(
        _Names({"nodes": _Names(NUMBER), "random_labelling": _Names(NUMBER), "all_cells": NUMBER})
    ),
    "held_out_log_likelihood": _Optional(_HELD_OUT),
    "environments": _Optional({"n_besides_observational": _Count(), "kind": str}),
    "designed": _Optional(_Names(Mapping)),
    "evaluation": _Optional(_EVALUATION),
    "restarts": _Optional(Mapping),
}


class MissingEntryError(ValueError, KeyError):
    """An entry of a run's file is not there; the message is one line, and names file and entry."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Entries(dict[str, Any]):
    """Entries by name that were read from a file: one that is missing is no fault of the program, and says so."""

    def __init__(self, entries: Mapping[str, Any], place: str) -> None:
        super().__init__({name: _with_place(entry, f"{place}/{name}") for name, entry in entries.items()})
        self._place = place

    def __missing__(self, name: object) -> Any:
        raise MissingEntryError(f"{self._place}: expected an entry {name}, got none; fit again")


def _with_place(value: Any, place: str) -> Any:
    if isinstance(value, Mapping):
        return _Entries(value, place)
    return [_with_place(entry, place) for entry in value] if isinstance(value, list) else value


def checked_summary(content: Any, place: str) -> dict[str, Any]:
    """A summary whose entries are of the kinds that readers count on; ones that no reader knows may be anything.

    Entries of the schema may be missing, as in runs of earlier versions: who needs one gets a `MissingEntryError`.

    Args:
        content: What `summary.json` holds.
        place: The file, for messages.

    Raises:
        ValueError: An entry is of another kind, or does not go with the others; the message says which.
    """
    _check(content, _SUMMARY, "")
    needed = (*_ALWAYS, *(() if content.get("status") == "diverged" else _OF_RESULTS))
    missing = [name for name in needed if name not in content]
    _expect(not missing, f"an entry {', '.join(missing)}", content, "")
    _check_sizes(content)
    return _Entries(content, place)


_FACTS = {
    "config": _Optional(
        {
            "graph": _Optional({"temperature_end": NUMBER, "edge_rate": NUMBER}),
            "knowledge": _Optional({"tiers": [[str]], "forbid": [str], "require": [str], "designed": [str]}),
        }
    )
}


def check_facts(facts: Any) -> None:
    """Refuse what cannot be the attribute `facts` of a `posterior.nc`.

    Raises:
        ValueError: An entry is of another kind; the message says which.
    """
    _check(facts, _FACTS, "facts")


def _check_sizes(summary: Mapping[str, Any]) -> None:
    """That tables have a row and a column per node, and names stand for nodes."""
    nodes, graph = list(summary["nodes"]), summary.get("graph", {})
    if len(nodes) > _MOST_NODES:
        raise ValueError(f"nodes: expected at most {_MOST_NODES}, got {len(nodes)}")
    if graph.get("node_names", nodes) != nodes:
        raise ValueError(f"graph/node_names: expected the nodes {', '.join(nodes)}, got {graph['node_names']}")
    posterior = graph.get("posterior") or {}
    tables = {f"graph/{name}": graph.get(name) for name in ("edge_strength", "adjacency", "mutual_information")}
    tables |= {f"graph/posterior/{name}": posterior.get(name) for name in (*_EDGE_TABLES, "cpdag")}
    tables["graph/equivalence_class/cpdag"] = (graph.get("equivalence_class") or {}).get("cpdag")
    classes = enumerate(posterior.get("classes") or ())
    tables |= {f"graph/posterior/classes/{rank}": found.get("cpdag") for rank, found in classes}
    for name, table in tables.items():
        if table is not None and [len(row) for row in table] != [len(nodes)] * len(nodes):
            raise ValueError(f"{name}: expected a row and a column for each of {len(nodes)} nodes, got another table")
    identified = (summary.get("identifiability") or {}).get("identified_nodes", [])
    named = (summary.get("labelling") or {}).get("named_nodes") or []
    strange = sorted({*identified, *named} - set(nodes))
    if strange:
        raise ValueError(f"expected names of nodes, {', '.join(nodes)}, got {strange[0]!r}")


def _check(value: Any, kind: Any, where: str) -> None:
    if isinstance(kind, _Optional):
        if value is not None:
            _check(value, kind.kind, where)
    elif isinstance(kind, _Names):
        _expect(isinstance(value, Mapping) and len(value) <= _MOST_NAMES, "entries by name", value, where)
        for name, entry in value.items():
            _check(entry, kind.kind, f"{where}/{name}")
    elif isinstance(kind, dict):
        _expect(isinstance(value, Mapping), "entries by name", value, where)
        for name, entry in kind.items():
            if name in value:
                _check(value[name], entry, f"{where}/{name}" if where else name)
    elif isinstance(kind, list):
        _expect(isinstance(value, list), "a list", value, where)
        for position, entry in enumerate(value):
            _check(entry, kind[0], f"{where}/{position}")
    else:
        _expect(_is(value, kind), _WORDS.get(kind, "a number, or null"), value, where)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, _Or):
        return any(_is(value, one) for one in kind.kinds)
    if isinstance(kind, _Count):
        return isinstance(value, int) and not isinstance(value, bool) and value >= kind.least
    if kind is None:
        return value is None
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    Mapping: "entries by name",
    _Count(): "a whole number of at least 0",
    _Count(1): "a whole number of at least 1",
}


def _expect(holds: bool, what: str, value: Any, where: str) -> None:
    if not holds:
        got = repr(value)
        raise ValueError(f"{where or 'all of it'}: expected {what}, got {got if len(got) < 60 else f'{got[:57]}...'}")
