"""`causalpima svi ...`: the commands of `python -m inference.svi ...`, for an installed program."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

__all__ = ["COMMANDS", "main"]


COMMANDS = {
    "svi": "fit a data set, several starts, or a user's own files",
    "predict": "clusters of new samples, and measurements that they lack",
    "evaluate": "scores of a run against what is known",
    "check": "negative controls: what a run finds where there is nothing",
    "diagnose": "whether the variational posterior of a run is calibrated",
    "name": "names for the clusters of a run",
    "graph": "the posterior over graphs, of a run or a table",
    "mcmc": "Markov chains over the graph of a run",
    "query": "interventions, conditions and counterfactuals on a run",
    "identify": "what data and knowledge could identify, before a fit",
    "explore": "clusters of images, and a sheet to look at them",
    "prepare": "a data file from a folder of measurements",
    "report": "the page of a run",
    "export": "the graph of a run for other programs",
    "ablate": "tables of fits with parts exchanged",
}
"""What each command is for, the common ones first."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status.

    Args:
        argv: Name of the command and its arguments; None: those of the process.
    """
    name, *words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help"):
        print("usage: causalpima COMMAND [arguments]; causalpima COMMAND --help says which\n")
        print("\n".join(f"  {command:<10}{text}" for command, text in COMMANDS.items()))
        return 0
    if name not in COMMANDS:
        print(f"causalpima: expected a command, got {name}; one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    command = importlib.import_module(f"causalpima.inference.{name}")
    return int(command.main(words))


if __name__ == "__main__":
    sys.exit(main())
