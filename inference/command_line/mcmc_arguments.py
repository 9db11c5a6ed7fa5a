"""Arguments of `python -m inference.mcmc`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jsonargparse import ArgumentParser

from inference.command_line.flag_types import FlagError, count, optional_path, whole_number
from inference.command_line.parsing import command_parser, parse_in_plain_words
from inference.graphs.mcmc.chain import Settings

__all__ = ["Arguments", "parse"]

_USAGE = "python -m inference.mcmc RUN [--program hodge|dags] [--chains 4 --warmup 500 --draws 500] [--json FILE]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Sample the posterior over the graph of a finished run by the No-U-Turn sampler, given its embedding, with N summed out.
hodge: node scores, edge weights and tables, as in training. dags: all graphs of up to 4 nodes, equally likely
beforehand, with Dirichlet tables. Says whether the chains can be believed; writes mcmc.nc, mcmc.json and figures.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        program: `hodge` or `dags`.
        settings: Length of a chain.
        chains: Number of chains.
        seed: Seed of all of them.
        jobs: Processes side by side.
        equivalent_sample_size: Of the Dirichlet tables of `dags`.
        json: Another file for the numbers, or None.
    """

    run: Path
    program: Literal["hodge", "dags"]
    settings: Settings
    chains: int
    seed: int
    jobs: int
    equivalent_sample_size: float
    json: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    json = optional_path(found.json)
    settings = Settings(found.warmup, found.draws, full_mass=found.program == "hodge")
    return Arguments(Path(found.run), found.program, settings, found.chains, found.seed, found.jobs, found.ess, json)


def _build_parser() -> ArgumentParser:
    parser = command_parser("mcmc", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--program", choices=["hodge", "dags"], default="hodge", help="What is sampled (default hodge).")
    add("--chains", type=count, default=4, metavar="N", help="Number of chains (default 4).")
    add("--warmup", type=_steps, default=500, metavar="N", help="Steps that adapt and are dropped (default 500).")
    add("--draws", type=_steps, default=500, metavar="N", help="Draws of each chain (default 500).")
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed (default 0).")
    add("--jobs", type=count, default=1, metavar="N", help="Chains side by side, in processes (default 1).")
    add("--ess", type=_positive, default=1.0, metavar="S", help="Equivalent sample size of dags (default 1).")
    add("--json", type=str, metavar="FILE", help="Write the numbers to this file, too.")
    return parser


def _steps(value: Any) -> int:
    return whole_number(value, least=4)


def _positive(value: Any) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise FlagError(f"expected a positive number, got {value}")
    return number
