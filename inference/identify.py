"""`python -m inference.identify`: how many meanings of the nodes remain, and what to add; nothing is fitted.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from causalpima.inference.clusters.identify import identify
from causalpima.inference.command_line.flags import DATASETS, mask_from_text, parse_nodes
from causalpima.inference.command_line.parsing import command_parser, parse_in_plain_words, run_command
from causalpima.inference.command_line.words import FlagError, optional_path
from causalpima.inference.store.files import write_json

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.identify`, checked.


_USAGE = "python -m inference.identify (--nodes 2,2,2 | --dataset NAME) [--mask a=N1,N2 b=N2,N3] [--FLAG VALUE ...]"
_NO_NODES = f"nodes: expected outcomes per node, for example 2,3 or type=2,response=3, got none; {_USAGE}"
_SWITCH = {"true": True, "yes": True, "false": False, "no": False}
_OF_DATA = {
    "--read_outs": (
        "expected what can be counted before a fit, got effects that are declared to add up, of which the samples "
        "decide; python -m inference.svi --read_outs searches by them"
    ),
    "--observe": (
        "expected nodes with labels as --labels NODE, got variables of a file, which python -m inference.svi --observe "
        "reads"
    ),
}
_DESCRIPTION = """\
Say, before anything is fitted, what can be known: how many readings of the clusters as outcomes of nodes fit equally
well, which nodes are identified, what an edge between them can mean, and which single addition would settle most.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        side_information: Arguments of `identify`, by name.
        json: File for the report, or None.
    """

    side_information: Mapping[str, Any]
    json: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), _as_known_here(argv))
    if found.nodes is None and found.dataset is None:
        raise ValueError(_NO_NODES)
    return Arguments(_side_information(found), optional_path(found.json))


def _side_information(found: Namespace) -> dict[str, Any]:
    config = None if found.dataset is None else DATASETS[found.dataset].config
    nodes = parse_nodes(found.nodes) if config is None or found.nodes is not None else dict(config.nodes)
    return {
        "nodes": nodes,
        "mask": mask_from_text(found.mask or ()) if found.mask or config is None else dict(config.mask),
        "labels": tuple(nodes) if found.names else _names("labels", found.labels or ()),
        "tiers": tuple(_names("tiers", [tier]) for tier in found.tiers or ()),
        "environments": tuple(part for word in found.environments or () for part in word.split()),
        "independent": found.independent,
    }


def _as_known_here(argv: Sequence[str]) -> list[str]:
    """The flags of `inference.svi` that declare the same by another name, as this command calls it.

    Raises:
        ValueError: A flag for what only the data settle; the message says which command knows it.
    """
    words, known = list(argv), []
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if flag in _OF_DATA:
            raise ValueError(f"{flag.removeprefix('--')}: {_OF_DATA[flag]}")
        if flag != "--independent_nodes":
            known.append(f"{flag}{equals}{value}")
            continue
        value = value if equals else words.pop(0) if words[:1] and words[0].lower() in _SWITCH else "true"
        if value.lower() not in _SWITCH:
            raise ValueError(f"independent_nodes: expected true or false, got {value!r}")
        known += ["--independent"] * _SWITCH[value.lower()]
    return known


def _build_parser() -> ArgumentParser:
    parser = command_parser("identify", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("--nodes", type=_text, metavar="NODES", help="Outcomes per node: 2,3 or type=2,response=3.")
    add("--dataset", choices=list(DATASETS), metavar="NAME", help="Take nodes and mask of this data set of svi.")
    add("--mask", type=str, nargs="+", metavar="A=N1,N2", help="Nodes that each modality sees; default all see all.")
    add("--labels", type=str, nargs="+", metavar="NODE", help="Nodes for which some samples are labelled.")
    add("--names", action="store_true", help="Every cluster is named: as labels of all nodes.")
    add("--tiers", type=str, nargs="+", metavar="N1,N2", help="Nodes in order of time, earlier tiers first.")
    add(
        "--environments",
        type=str,
        nargs="+",
        metavar="do(NODE)",
        help="Experiments: do(NODE) or do(NODE=OUTCOME) set a node, soft(NODE) changes its distribution; ?: not known.",
    )
    add("--independent", action="store_true", help="The nodes are independent, as --independent_nodes of svi.")
    add("--json", type=str, metavar="FILE", help="Write the report to this file, too.")
    return parser


def _text(value: Any) -> str:
    if not isinstance(value, str | int):
        raise FlagError(f"expected outcomes per node, for example 2,3, got {value}")
    return str(value)


def _names(flag: str, words: Sequence[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for word in words for name in word.split(","))
    if not all(names):
        raise ValueError(f"{flag}: expected names of nodes with commas between them, got {' '.join(words)!r}")
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("identify", _command, argv)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    report = identify(**arguments.side_information)
    if arguments.json is not None:
        write_json(arguments.json, report.to_dict())
    print(report.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
