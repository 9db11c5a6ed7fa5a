"""The value of `--nodes`: outcomes per node, `2,3` or `type=2,response=3`."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from causalpima.examples.circle_environments import EXPERIMENTS as CIRCLES_ENVIRONMENTS
from causalpima.examples.circle_views import EXPERIMENTS as CIRCLES_VIEWS
from causalpima.examples.circles import EXPERIMENTS as CIRCLES
from causalpima.examples.lattices import EXPERIMENTS as LATTICES
from causalpima.examples.pendulum import EXPERIMENTS as PENDULUM
from causalpima.examples.resin_coupons import EXPERIMENTS as RESIN_COUPONS
from causalpima.examples.synthetic_nets import EXPERIMENTS as SYNTHETIC_NETS
from causalpima.inference.command_line.words import as_flag
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.graphs.dags import ARROW, KnowledgeConfig, edge_text, read_edge
from causalpima.inference.store.input_files import read_text, reason_of
from causalpima.inference.training.config import Experiment, ModelConfig

__all__ = [
    "DATASETS",
    "OPTIONS",
    "DataFile",
    "add_knowledge_arguments",
    "knowledge_of",
    "mask_from_text",
    "observe_from_text",
    "observed_in",
    "parse_nodes",
    "read_edges",
    "read_graph_file",
    "read_nodes",
    "read_tiers",
    "with_graph_file",
    "with_mask",
    "with_observed",
]


_EXAMPLES = "for example 2,3 or type=2,response=3"
# A cluster per cell: far beyond what can be fitted, or counted in a moment.
_MOST_CELLS = 10**6


def parse_nodes(value: str | int | Sequence[int] | Mapping[str, int]) -> dict[str, int]:
    """Outcomes per node by name; unnamed nodes are called N1, N2, ...

    Args:
        value: `"2,3"`, `"type=2,response=3"`, `[2, 3]` or `{"type": 2, "response": 3}`.

    Raises:
        ValueError: Anything else, a name given twice, fewer than two outcomes, or more than a million combinations.

    >>> parse_nodes("type=2,response=3"), parse_nodes([2, 3])
    ({'type': 2, 'response': 3}, {'N1': 2, 'N2': 3})
    """
    pairs = _node_pairs(value)
    nodes = {name: _outcomes(name, outcomes) for name, outcomes in pairs}
    if not pairs:
        raise ValueError(f"nodes: expected outcomes per node, {_EXAMPLES}, got {value!r}")
    if len(nodes) < len(pairs):
        raise ValueError(f"nodes: expected a name of its own for every node, {_EXAMPLES}, got {value!r}")
    _check_cells(nodes)
    return nodes


def _check_cells(nodes: Mapping[str, int]) -> None:
    cells = math.prod(nodes.values())
    if cells > _MOST_CELLS:
        many = f"{cells}" if cells < 10 * _MOST_CELLS else f"about 1e{math.floor(math.log10(cells))}"
        raise ValueError(
            f"nodes: expected at most {_MOST_CELLS} combinations of outcomes, got {many}; give fewer outcomes or nodes"
        )


def _node_pairs(value: object) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(str(name), outcomes) for name, outcomes in value.items()]
    if isinstance(value, str):
        parts = value.strip("[] ").split(",")
        return [_split_node(part.strip(), position) for position, part in enumerate(parts, start=1)]
    sequence = value if isinstance(value, list | tuple) else [value]
    return [(f"N{position}", outcomes) for position, outcomes in enumerate(sequence, start=1)]


def _split_node(part: str, position: int) -> tuple[str, str]:
    name, equals, outcomes = part.partition("=")
    return (name.strip(), outcomes) if equals else (f"N{position}", name)


def _outcomes(name: str, value: object) -> int:
    try:
        outcomes = int(str(value))
    except ValueError:
        outcomes = 0
    if outcomes < 2 or not name.isidentifier():
        raise ValueError(
            f"nodes: expected whole numbers >= 2 and names that are one word, {_EXAMPLES}, "
            f"got {value!r} for node {name!r}"
        )
    return outcomes


# The value of `--mask`: which nodes each modality sees, `image=shape,hue spectrum=hue`.


_MASK_EXAMPLE = "for example image=N1,N2 curve=N2"


def mask_from_text(value: str | Sequence[str] | Mapping[str, Sequence[str] | str]) -> dict[str, tuple[str, ...]]:
    """Nodes that each modality sees, by modality.

    Whether there are such nodes and modalities is for those to check who know them.

    Args:
        value: `"a=N1,N2 b=N2"`, `["a=N1,N2", "b=N2"]`, or a mapping as configuration files have it.

    Raises:
        ValueError: Anything else, a modality given twice, or a node given twice for one modality.

    >>> mask_from_text("a=N1,N2 b=N2")
    {'a': ('N1', 'N2'), 'b': ('N2',)}
    """
    pairs = [_checked(name, nodes) for name, nodes in _mask_pairs(value)]
    mask = dict(pairs)
    if len(mask) < len(pairs):
        raise ValueError(f"mask: expected every modality once, {_MASK_EXAMPLE}, got {value!r}")
    return mask


def with_mask(argv: Sequence[str]) -> list[str]:
    """A command line with the pairs that follow `--mask` as one word: `--mask a=N1,N2 b=N2` -> `--mask "a=N1,N2 b=N2"`.

    >>> with_mask(["--mask", "a=N1", "b=N2", "--quiet"])
    ['--mask', 'a=N1 b=N2', '--quiet']
    """
    words: list[str] = []
    for word in argv:
        if words[-2:-1] == ["--mask"] and not any(part.startswith("--") for part in (words[-1], word)):
            words[-1] = f"{words[-1]} {word}"
        else:
            words.append(word)
    return words


def _mask_pairs(value: str | Sequence[str] | Mapping[str, Sequence[str] | str]) -> list[tuple[str, Sequence[str]]]:
    if isinstance(value, Mapping):
        return [(str(name), _words(nodes)) for name, nodes in value.items()]
    words = value.split() if isinstance(value, str) else [part for word in value for part in str(word).split()]
    return [_split_mask(word) for word in words]


def _split_mask(word: str) -> tuple[str, Sequence[str]]:
    if any("=" in part for part in word.partition(",")[2].split(",")):
        entries = re.sub(r",(?=[^,=]*=)", " ", word)
        raise ValueError(f"mask: expected modalities separated by spaces, got commas, {word!r}; write --mask {entries}")
    name, equals, nodes = word.rpartition("=")
    if not equals:
        raise ValueError(f"mask: expected MODALITY=NODE,NODE, {_MASK_EXAMPLE}, got {word!r}")
    return name, _words(nodes)


def _words(nodes: Sequence[str] | str) -> Sequence[str]:
    return [node.strip() for node in nodes.split(",")] if isinstance(nodes, str) else nodes


def _checked(name: str, nodes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    names = tuple(map(str, nodes))
    if not name or not names or not all(names):
        raise ValueError(
            f"mask: expected a modality and the nodes that it sees, {_MASK_EXAMPLE}, got {name}={','.join(names)}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"mask: expected every node once per modality, {_MASK_EXAMPLE}, got {name}={','.join(names)}")
    return name, names


# The value of `--observe`: which variables hold the outcomes of which nodes, `type` or `type=alloy,response=class`.


_FLAG = "--observe"
_OBSERVE_EXAMPLE = "for example type, or type=alloy,response=class"


def observe_from_text(value: str) -> dict[str, str]:
    """Variables by node; a name alone is a variable that is called like its node.

    Args:
        value: `"type"` or `"type=alloy,response=class"`.

    Raises:
        ValueError: An entry that is empty, or a node given twice.

    >>> observe_from_text("type,response=class")
    {'type': 'type', 'response': 'class'}
    """
    pairs = [_pair(part, value) for part in value.split(",")]
    variables = dict(pairs)
    if len(variables) < len(pairs):
        raise ValueError(f"observe: expected every node once, {_OBSERVE_EXAMPLE}, got {value!r}")
    return variables


def _pair(part: str, value: str) -> tuple[str, str]:
    node, equals, variable = (word.strip() for word in part.partition("="))
    if not node or (equals and not variable):
        raise ValueError(
            f"observe: expected NODE or NODE=VARIABLE with commas between them, {_OBSERVE_EXAMPLE}, got {value!r}"
        )
    return node, variable or node


def with_observed(argv: Sequence[str]) -> list[str]:
    """A command line with all that follows `--observe` as the one setting `--observe.variables`.

    Raises:
        ValueError: A value that is none, or nothing after the flag.
    """
    words, found, rest = list(argv), [], []
    while words:
        word = words.pop(0)
        if word == _FLAG and words and not words[0].startswith("--"):
            found.append(words.pop(0))
        elif word.startswith(f"{_FLAG}="):
            found.append(word.removeprefix(f"{_FLAG}="))
        elif word == _FLAG:
            raise ValueError(f"observe: expected NODE or NODE=VARIABLE after --observe, {_OBSERVE_EXAMPLE}, got none")
        else:
            rest.append(word)
    return [*rest, f"{_FLAG}.variables={json.dumps(observe_from_text(','.join(found)))}"] if found else rest


def observed_in(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables that settings of a run, nested as in a file or flat as on a command line, observe."""
    nested = settings.get("observe")
    of_file = nested.get("variables") if isinstance(nested, Mapping) else None
    variables = settings.get("observe.variables", of_file)
    if isinstance(variables, str):
        try:
            variables = json.loads(variables)
        except ValueError:  # the parser refuses it in its own words
            variables = {}
    return tuple(dict.fromkeys(variables.values())) if isinstance(variables, Mapping) else ()


# The flags `--knowledge.forbid`, `.require`, `.tiers` and `.designed`: edges and nodes with commas between them.
#
# `A->B,B->C` is a list of edges and `A,B;C` one of tiers. A name that holds a comma or a semicolon stands in a list in
# JSON: `--knowledge.forbid '["a,b->c"]'`. Files of settings have lists or the same text.


_FLAGS = ("forbid", "require", "tiers", "designed")


def add_knowledge_arguments(parser: ArgumentParser) -> None:
    """Let a parser have the four flags; `knowledge_of` makes a `KnowledgeConfig` of what it parsed."""
    group = parser.add_argument_group("What is known of the graph (docs/knowledge.md)")
    for name, read, metavar, text in (
        ("forbid", read_edges, "A->B,B->C", "Edges that are not there."),
        ("require", read_edges, "A->B", "Edges that are there."),
        ("tiers", read_tiers, "A,B;C", "Nodes in order of time, tier by tier."),
        ("designed", read_nodes, "A,B", "Nodes that were set: no causes."),
    ):
        flag = f"knowledge.{name}"
        group.add_argument(f"--{flag}", type=as_flag(partial(read, flag)), default=(), metavar=metavar, help=text)


def knowledge_of(found: Any) -> KnowledgeConfig:
    """What the flags declare; `inference.graphs.dags.graph_knowledge` checks it against the nodes.

    Args:
        found: The entry `knowledge` of what a parser with these flags parsed.
    """
    return KnowledgeConfig(**{name: found[name] or () for name in _FLAGS})


def read_edges(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Edges, one text each.

    Args:
        name: Name of the flag, for messages.
        value: `A->B,B->C` (or with the arrow of Unicode), a list in JSON, or a list.

    Raises:
        ValueError: An entry without an arrow.

    >>> read_edges("knowledge.forbid", "a->b, b->c")
    ('a->b', 'b->c')
    """
    entries = read_nodes(name, value)
    odd = next((entry for entry in entries if not ARROW.search(entry)), None)
    if odd is not None:
        raise ValueError(
            f"{name}: expected edges as A->B with commas between them, got {odd!r}; a name with a comma stands in a "
            "list in JSON"
        )
    return entries


def read_nodes(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Names: `A,B`, a list in JSON, or a list.

    Args:
        name: Name of the flag, for messages.
        value: The value.

    Raises:
        ValueError: A name that is empty or none.

    >>> read_nodes("knowledge.designed", "dose, batch")
    ('dose', 'batch')
    """
    names = _entries(value, ",")
    if not _are_names(names):
        raise ValueError(f"{name}: expected names with commas between them, got {value!r}")
    return tuple(names)


def read_tiers(name: str, value: str | Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Tiers: `A,B;C`, a list of lists in JSON, or a list of lists.

    Args:
        name: Name of the flag, for messages.
        value: The value.

    Raises:
        ValueError: A name that is empty or none.

    >>> read_tiers("knowledge.tiers", "sex,age; dose")
    (('sex', 'age'), ('dose',))
    """
    tiers = _entries(value, ";")
    groups = [_entries(tier, ",") for tier in tiers] if isinstance(tiers, list | tuple) else [None]
    if not all(map(_are_names, groups)):
        raise ValueError(f"{name}: expected tiers as A,B;C, or a list of lists, got {value!r}")
    return tuple(tuple(group or ()) for group in groups)


def _entries(value: Any, separator: str) -> Any:
    """Parts of a text, or what it is in JSON; anything else as it is."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(separator)]
    try:
        return json.loads(value)
    except ValueError:
        return None


def _are_names(names: Any) -> bool:
    return isinstance(names, list | tuple) and all(isinstance(name, str) and name for name in names)


# The data sets that commands know by name.


DATASETS: Mapping[str, Experiment] = {
    **CIRCLES,
    **CIRCLES_VIEWS,
    **CIRCLES_ENVIRONMENTS,
    **PENDULUM,
    **SYNTHETIC_NETS,
    **LATTICES,
    **RESIN_COUPONS,
}


# The samples behind `--data FILE`, and where the file is.


OPTIONS = tuple(option.name for option in dataclasses.fields(ReadOptions) if option.name != "observe")
"""Names of the flags that go with `--data`."""


@dataclass(frozen=True)
class DataFile:
    """A file of samples, read.

    Attributes:
        given: The path as it was given.
        resolved: The path from the root, so that a run can be resumed from another folder.
        options: What was asked to be read, and as what.
        samples: What was read.
    """

    given: str
    resolved: str
    options: ReadOptions
    samples: MultimodalData = field(compare=False, repr=False)

    @classmethod
    def read(cls, settings: Mapping[str, Any], observed: Sequence[str] = ()) -> DataFile:
        """Read the file that settings name as `data`, with the options among them.

        Where it is not, the place that `data_resolved` says is tried, if that is a file of the same name.

        Args:
            settings: The settings.
            observed: Variables that tell nodes: labels, too, scored against beside those that the settings name.

        Raises:
            ValueError: Options or a file that cannot be used.
        """
        given = settings["data"]
        if not isinstance(given, str):
            raise ValueError(f"data: expected the path of a file, got {given!r}")
        options = ReadOptions(**{name: settings[name] for name in OPTIONS if settings.get(name) is not None})
        path = _existing(given, settings.get("data_resolved"))
        samples = as_multimodal(path, dataclasses.replace(options, observe=tuple(dict.fromkeys(observed))))
        return cls(given, str(path.absolute()), options, samples)

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.samples.name

    def to_settings(self) -> dict[str, Any]:
        """What `read` takes, as plain values; options that say nothing are left out."""
        options = {name: _plain(getattr(self.options, name)) for name in OPTIONS}
        asked = {name: value for name, value in options.items() if value != _plain(getattr(ReadOptions(), name))}
        return {"data": self.given, "data_resolved": self.resolved, **asked}


def _existing(given: str, resolved: object) -> Path:
    path = Path(given).expanduser()
    other = Path(resolved) if isinstance(resolved, str) else path
    return other if not path.exists() and other.exists() and other.name == path.name else path


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# A graph from a file: a table of zeros and ones, or a line per edge.


_PREFIX = "fixed:"
_FORMS = "a table with the names of the nodes in its first row and column, or lines A -> B"


def with_graph_file(model: ModelConfig, nodes: Sequence[str]) -> ModelConfig:
    """The settings with the edges of the file that `fixed:FILE` names in place of its name: it is needed no more.

    Raises:
        ValueError: No such file, or it holds no graph over these nodes.
    """
    if not model.graph.startswith(_PREFIX):
        return model
    return dataclasses.replace(model, graph="fixed", edges=read_graph_file(model.graph.removeprefix(_PREFIX), nodes))


def read_graph_file(path: Path | str, nodes: Sequence[str]) -> tuple[str, ...]:
    """Edges `A->B` of a graph over the nodes.

    Args:
        path: A table with commas (what the export of a graph writes), entry 1 from row to column, or a text of lines
            `A -> B`; empty lines and lines that begin with # do not count.
        nodes: Names of all nodes; the table has each of them, in any order.

    Raises:
        ValueError: It cannot be read, is neither, or has other nodes, an edge without direction or one twice.
    """
    lines = [line for line in _text(path).splitlines() if line.strip() and not line.lstrip().startswith("#")]
    is_list = lines and all(ARROW.search(line) for line in lines)
    edges = tuple(_listed(path, lines, nodes) if is_list else _table(path, lines, nodes))
    twice = next((edge for number, edge in enumerate(edges) if edge in edges[:number]), None)
    if twice is not None:
        raise ValueError(f"model.graph: expected every edge once in {path}, got {twice} twice; leave one out")
    return edges


def _text(path: Path | str) -> str:
    try:
        return read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"model.graph: expected a file with a graph, got {path}: {reason_of(error)}; it is {_FORMS}"
        ) from error


def _listed(path: Path | str, lines: Sequence[str], nodes: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield edge_text(*read_edge(f"model.graph: {path}", line, nodes))


def _table(path: Path | str, lines: Sequence[str], nodes: Sequence[str]) -> Iterator[str]:
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    names = rows[0][1:] if rows else []
    found = [row[0] for row in rows[1:]]
    if not rows or names != found or any(len(row) != len(names) + 1 for row in rows):
        raise ValueError(f"model.graph: expected {_FORMS} in {path}, got something else")
    if sorted(names) != sorted(nodes):
        raise ValueError(f"model.graph: expected the nodes {', '.join(nodes)} in {path}, got {', '.join(names)}")
    entries = {(cause, names[k]): _entry(path, cell) for cause, *row in rows[1:] for k, cell in enumerate(row)}
    for (cause, effect), is_edge in entries.items():
        if is_edge and entries[effect, cause]:
            raise ValueError(
                f"model.graph: expected edges with a direction in {path}, got {cause} -- {effect} both ways; set one "
                "of the two to 0"
            )
    yield from (edge_text(*pair) for pair, is_edge in entries.items() if is_edge)


def _entry(path: Path | str, cell: str) -> bool:
    if cell not in ("0", "1", "0.0", "1.0"):
        raise ValueError(f"model.graph: expected 0 or 1 in {path}, got {cell!r}; 1 is an edge from row to column")
    return cell.startswith("1")
