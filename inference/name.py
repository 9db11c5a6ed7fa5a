"""`python -m inference.name`: what the clusters of a run look like, and names for them.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the fit had failed (collapsed), 130 Ctrl-C, 143
SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser

from causalpima.inference.command_line.parsing import (
    FAILED_FIT,
    add_code_flag,
    add_computing_flags,
    command_parser,
    parse_in_plain_words,
    run_command,
)
from causalpima.inference.command_line.run_data import naming_source, settings_of_run
from causalpima.inference.command_line.words import optional_path
from causalpima.inference.naming import FoundRun, Shown, remove_names, restore_unnamed, stage_named
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.store.files import write_json
from causalpima.inference.store.run_folder import RunFolder

__all__ = [
    "Arguments",
    "main",
    "name",
    "parse",
]


# Arguments of `python -m inference.name`, checked.


_USAGE = "python -m inference.name RUN [--names FILE.csv [--output_dir FOLDER] | --remove] [--FLAG VALUE ...]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Show what every cluster of a finished run looks like, and take names for the clusters.

Without --names: writes RUN/names/contact_sheet.png and a table RUN/names/names.csv to fill in. With --names: numbers
and names the cells of the run as the table says, fits the graph to them, and writes its results anew.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        names: Table of names, or None to write one.
        output_dir: Folder for a named copy of the run, or None: names go into the run itself.
        remove: Take the names of the run away again.
        device: Where to compute.
        threads: Threads to compute with.
        json: File for the summary, or None.
    """

    run: Path
    names: Path | None
    output_dir: Path | None
    remove: bool
    device: str
    threads: int
    json: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    arguments = Arguments(
        Path(found.run),
        optional_path(found.names),
        optional_path(found.output_dir),
        found.remove,
        found.device,
        found.threads,
        optional_path(found.json),
    )
    _check(arguments)
    return arguments


def _build_parser() -> ArgumentParser:
    parser = command_parser("name", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--names", type=str, metavar="FILE.csv", help="The table, filled in.")
    add("--output_dir", type=str, metavar="FOLDER", help="Leave RUN as it is, and write a named copy of it here.")
    add("--remove", action="store_true", help="Take the names away: the run as it was found.")
    add_computing_flags(parser)
    add("--json", type=str, metavar="FILE", help="Write what is printed to this file, too, for machines.")
    return parser


def _check(arguments: Arguments) -> None:
    if arguments.remove and (arguments.names is not None or arguments.output_dir is not None):
        raise ValueError("remove: expected it without names and output_dir, got both; leave one of them out")
    if arguments.output_dir is not None and arguments.names is None:
        raise ValueError("output_dir: expected it with names, got none; give the table by --names FILE.csv")
    if arguments.output_dir is not None and arguments.output_dir.absolute() == arguments.run.absolute():
        raise ValueError("output_dir: expected another folder than that of the run, got the same; leave it out")


# What `python -m inference.name` does with its arguments: show clusters, take names, take them away.


def name(arguments: Arguments) -> int:
    """Show the clusters of a run, name them, or take the names away; returns the exit status.

    Raises:
        ValueError: The run, its data, or the names cannot be used; nothing is changed.
    """
    torch.set_num_threads(arguments.threads)
    folder = RunFolder(arguments.run)
    target = RunFolder(arguments.output_dir) if arguments.output_dir is not None else folder
    if target is not folder:
        target.check()
    if arguments.remove and (folder.unnamed / "summary.json").is_file():
        with folder.in_use():
            return _told(restore_unnamed(folder), folder, arguments)
    settings = settings_of_run(folder)
    with folder.in_use():
        data = settings.make_data()
        with naming_source(settings):
            found = FoundRun(folder, data, arguments.device)
        if arguments.remove:
            return _told(remove_names(found, folder).summary, folder, arguments)
        if arguments.names is None:
            return _show(found.show(), arguments)
        result = found.named(arguments.names)
        if target is folder:
            with folder.changes() as changes:
                stage_named(found, result, changes, arguments.names)
            return _told(result.summary, folder, arguments)
    with target.created(folder.read_config()) as changes:
        stage_named(found, result, changes, arguments.names)
    return _told(result.summary, target, arguments)


def _show(shown: Shown, arguments: Arguments) -> int:
    if not shown.is_new:
        print(f"note: {shown.table} has names already and is kept", file=sys.stderr)
    if arguments.json is not None:
        write_json(arguments.json, shown.to_plain())
    print("cluster  samples")
    print("\n".join(f"{cluster:>7}  {size:>7}" for cluster, size in enumerate(shown.sizes)))
    print(f"Look at   {', '.join(map(str, shown.files))}")
    print(f"Fill in   {shown.table}: the outcome of every node, for every cluster; heads of columns rename nodes")
    print(f"Then      python -m inference.name {arguments.run} --names {shown.table}")
    return 0


def _told(summary: Mapping[str, Any], folder: RunFolder, arguments: Arguments) -> int:
    if arguments.json is not None:
        write_json(arguments.json, summary)
    print(summary_table({**summary, "output_dir": str(folder.path)}))
    return 0 if summary["status"] == "ok" else FAILED_FIT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("name", lambda arguments: name(parse(arguments)), argv, reads_run=True)


if __name__ == "__main__":
    sys.exit(main())
