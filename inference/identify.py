"""`python -m inference.identify`: how many meanings of the nodes remain, and what to add; nothing is fitted.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from argparse import SUPPRESS
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from causalpima.inference.clusters.identify import identify
from causalpima.inference.command_line.command import Command, File
from causalpima.inference.command_line.flags import DATASETS, mask_from_text, parse_nodes
from causalpima.inference.store.files import write_json

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


_SWITCH = {"true": True, "yes": True, "false": False, "no": False}


def switch(value: Any) -> bool:
    """`true` or `false`, as `inference.svi` takes them."""
    if str(value).lower() not in _SWITCH:
        raise ValueError(f"expected true or false, got {value!r}")
    return _SWITCH[str(value).lower()]


def refused(value: Any, text: str) -> None:
    """A flag of `inference.svi` for what only the data settle."""
    raise ValueError(text)


_EFFECTS = (
    "expected what can be counted before a fit, got effects that are declared to add up, of which the samples decide; "
    "python -m inference.svi --read_outs searches by them"
)
_VARIABLES = "expected nodes with labels as --labels NODE, got variables of a file, which inference.svi --observe reads"
Words = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Say, before anything is fitted, what can be known.

    How many readings of the clusters as outcomes of nodes fit equally well, which nodes are identified, what an edge
    between them can mean, and which single addition would settle most.

    Attributes:
        nodes: Outcomes per node: 2,3 or type=2,response=3.
        dataset: Take nodes and mask of this data set of inference.svi.
        mask: Nodes that each modality sees; default all see all.
        labels: Nodes for which some samples are labelled.
        names: Every cluster is named: as labels of all nodes.
        tiers: Nodes in order of time, earlier tiers first.
        environments: Experiments: do(NODE) or do(NODE=OUTCOME) set a node, soft(NODE) changes its distribution; ?: not
            known.
        independent: The nodes are independent, as --independent_nodes of inference.svi.
        json: Write the report to this file, too.
        read_outs: Not known before a fit.
        observe: Not known before a fit.
    """

    nodes: Annotated[Mapping[str, int], parse_nodes, "NODES"] | None = None
    dataset: Annotated[str, "NAME", tuple(DATASETS)] | None = None
    mask: Annotated[Words, "A=N1,N2", {"nargs": "+"}] = ()
    labels: Annotated[Words, "NODE", {"nargs": "+"}] = ()
    names: bool = False
    tiers: Annotated[Words, "N1,N2", {"nargs": "+"}] = ()
    environments: Annotated[Words, "do(NODE)", {"nargs": "+"}] = ()
    independent: Annotated[
        bool, switch, "{true,false}", {"nargs": "?", "const": True, "aliases": ["independent_nodes"]}
    ] = False
    json: File | None = None
    read_outs: Annotated[None, partial(refused, text=_EFFECTS), {"help": SUPPRESS}] = None
    observe: Annotated[None, partial(refused, text=_VARIABLES), {"help": SUPPRESS}] = None

    def __post_init__(self) -> None:
        if self.nodes is None and self.dataset is None:
            raise ValueError(
                "nodes: expected outcomes per node, for example 2,3 or type=2,response=3, got none; "
                "give --nodes or --dataset"
            )
        self.side_information()

    def side_information(self) -> dict[str, Any]:
        """Arguments of `identify`, by name."""
        config = None if self.dataset is None else DATASETS[self.dataset].config
        nodes = dict(config.nodes if config is not None and self.nodes is None else self.nodes or {})
        return {
            "nodes": nodes,
            "mask": mask_from_text(self.mask) if self.mask or config is None else dict(config.mask),
            "labels": tuple(nodes) if self.names else _names("labels", self.labels),
            "tiers": tuple(_names("tiers", [tier]) for tier in self.tiers),
            "environments": tuple(part for word in self.environments for part in word.split()),
            "independent": self.independent,
        }


def _names(flag: str, words: Sequence[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for word in words for name in word.split(","))
    if not all(names):
        raise ValueError(f"{flag}: expected names of nodes with commas between them, got {' '.join(words)!r}")
    return names


def run(options: Options) -> int:
    """Count, write and print the report; returns the exit status."""
    report = identify(**options.side_information())
    if options.json is not None:
        write_json(options.json, report.to_dict())
    print(report.text())
    return 0


COMMAND = Command(
    "identify", Options, run, usage="(--nodes 2,2,2 | --dataset NAME) [--mask a=N1,N2 b=N2,N3] [--FLAG VALUE ...]"
)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
