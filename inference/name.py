"""`python -m inference.name`: what the clusters of a run look like, and names for them.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the fit had failed (collapsed), 130 Ctrl-C, 143
SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch

from causalpima.inference.command_line.command import Command, Computing, File, Folder, Run
from causalpima.inference.command_line.parsing import FAILED_FIT
from causalpima.inference.command_line.run_data import naming_source, settings_of_run
from causalpima.inference.naming import FoundRun, Shown, remove_names, restore_unnamed, stage_named
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.store.files import write_json
from causalpima.inference.store.run_folder import RunFolder

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


@dataclass(frozen=True)
class Options(Computing):
    """Show what every cluster of a finished run looks like, and take names for the clusters.

    Without --names: writes RUN/names/contact_sheet.png and a table RUN/names/names.csv to fill in. With --names:
    numbers and names the cells of the run as the table says, fits the graph to them, and writes its results anew.

    Attributes:
        run: Folder of a finished run.
        names: The table, filled in.
        output_dir: Leave RUN as it is, and write a named copy of it here.
        remove: Take the names away: the run as it was found.
        json: Write what is printed to this file, too, for machines.
    """

    run: Run
    _: KW_ONLY
    names: Annotated[Path, "FILE.csv"] | None = None
    output_dir: Folder | None = None
    remove: bool = False
    json: File | None = None

    def __post_init__(self) -> None:
        if self.remove and (self.names is not None or self.output_dir is not None):
            raise ValueError("remove: expected it without names and output_dir, got both; leave one of them out")
        if self.output_dir is not None and self.names is None:
            raise ValueError("output_dir: expected it with names, got none; give the table by --names FILE.csv")
        if self.output_dir is not None and self.output_dir.absolute() == self.run.absolute():
            raise ValueError("output_dir: expected another folder than that of the run, got the same; leave it out")


def run(options: Options) -> int:
    """Show the clusters of a run, name them, or take the names away; returns the exit status.

    Raises:
        ValueError: The run, its data, or the names cannot be used; nothing is changed.
    """
    torch.set_num_threads(options.threads)
    folder = RunFolder(options.run)
    target = RunFolder(options.output_dir) if options.output_dir is not None else folder
    if target is not folder:
        target.check()
    if options.remove and (folder.unnamed / "summary.json").is_file():
        with folder.in_use():
            return _told(restore_unnamed(folder), folder, options)
    settings = settings_of_run(folder)
    with folder.in_use():
        data = settings.make_data()
        with naming_source(settings):
            found = FoundRun(folder, data, options.device)
        if options.remove:
            return _told(remove_names(found, folder).summary, folder, options)
        if options.names is None:
            return _show(found.show(), options)
        result = found.named(options.names)
        if target is folder:
            with folder.changes() as changes:
                stage_named(found, result, changes, options.names)
            return _told(result.summary, folder, options)
    with target.created(folder.read_config()) as changes:
        stage_named(found, result, changes, options.names)
    return _told(result.summary, target, options)


def _show(shown: Shown, options: Options) -> int:
    if not shown.is_new:
        print(f"note: {shown.table} has names already and is kept", file=sys.stderr)
    if options.json is not None:
        write_json(options.json, shown.to_plain())
    print("cluster  samples")
    print("\n".join(f"{cluster:>7}  {size:>7}" for cluster, size in enumerate(shown.sizes)))
    print(f"Look at   {', '.join(map(str, shown.files))}")
    print(f"Fill in   {shown.table}: the outcome of every node, for every cluster; heads of columns rename nodes")
    print(f"Then      python -m inference.name {options.run} --names {shown.table}")
    return 0


def _told(summary: Mapping[str, Any], folder: RunFolder, options: Options) -> int:
    if options.json is not None:
        write_json(options.json, summary)
    print(summary_table({**summary, "output_dir": str(folder.path)}))
    return 0 if summary["status"] == "ok" else FAILED_FIT


COMMAND = Command(
    "name",
    Options,
    run,
    usage="RUN [--names FILE.csv [--output_dir FOLDER] | --remove] [--FLAG VALUE ...]",
    runs_code=True,
)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
