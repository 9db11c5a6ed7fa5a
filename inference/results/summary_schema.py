"""What stands in `summary.json`: the kinds of its entries, as every reader counts on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["check_summary"]

_MOST_NODES, _MOST_NAMES = 64, 10_000


class _Optional(NamedTuple):
    """An entry that may be missing, or null."""

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
_ALWAYS: dict[str, Any] = {"status": str, "dataset": str, "nodes": Mapping, "modalities": Mapping}
_COMMON = {
    "dataset": str,
    "seed": int,
    "status": str,
    "n_samples": _Count(),
    "modalities": _Names(_MODALITY),
    "nodes": _Names(_Count(1)),
    "epochs": _Optional(_Count()),
    "seconds": _Optional(_Names(NUMBER)),
    "versions": _Optional(_Names(str)),
}
_HELD_OUT = {
    "per_sample": NUMBER,
    "standard_error": _Optional(NUMBER),
    "n_samples": _Optional(_Count()),
    "n_draws": _Optional(_Count()),
    "split": _Optional(str),
    "collapsed_bound": _Optional(Mapping),
}
_EDGES = {"nodes": [str], "edge_probability": _TABLE, "adjacency_probability": _TABLE, "compelled_probability": _TABLE}
_POSTERIOR = {
    **_EDGES,
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
_EVALUATION = {
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
    "calibration": _Optional(Mapping),
    "graph": _Optional(Mapping),
}
_FOUND = {
    **_COMMON,
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


def check_summary(content: Any, is_whole: bool = True) -> None:
    """Refuse what is no summary; entries that no reader knows may be anything.

    Args:
        content: What `summary.json` holds.
        is_whole: Whether every entry has to be there; else only those that tell a run from another.

    Raises:
        ValueError: An entry is missing, of another kind, or does not go with the others; the message says which.
    """
    _check(content, _ALWAYS, "")
    diverged = content["status"] == "diverged"
    schema: dict[str, Any] = {**_COMMON, "reason": str} if diverged else _FOUND
    if not diverged:
        _check(content, _ALWAYS | {"clusters": Mapping, "graph": Mapping}, "")
    _check(content, schema if is_whole else _if_there(schema), "")
    if is_whole and not diverged:
        _check_sizes(content)


def _if_there(kind: Any) -> Any:
    """The same with entries that may be missing."""
    if isinstance(kind, dict):
        return {
            name: entry if isinstance(entry, _Optional) else _Optional(_if_there(entry)) for name, entry in kind.items()
        }
    return _Names(_if_there(kind.kind)) if isinstance(kind, _Names) else kind


def _check_sizes(summary: Mapping[str, Any]) -> None:
    """That tables have a row and a column per node, and names stand for nodes."""
    nodes, graph = list(summary["nodes"]), summary["graph"]
    if not 0 < len(nodes) <= _MOST_NODES or graph["node_names"] != nodes:
        raise ValueError(f"graph/node_names: expected the nodes {', '.join(nodes)}, got {graph['node_names']}")
    tables = {f"graph/{name}": graph.get(name) for name in ("edge_strength", "adjacency", "mutual_information")}
    posterior = graph.get("posterior") or {}
    for name in (*_EDGES, "cpdag"):
        tables[f"graph/posterior/{name}"] = posterior.get(name) if name != "nodes" else None
    tables["graph/equivalence_class/cpdag"] = (graph.get("equivalence_class") or {}).get("cpdag")
    tables |= {f"graph/posterior/classes/{k}": found["cpdag"] for k, found in enumerate(posterior.get("classes") or ())}
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
            if name in value or not isinstance(entry, _Optional):
                _expect(name in value, f"an entry {name}", value, where)
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
