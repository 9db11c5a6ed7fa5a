"""What `python -m inference.name` does with its arguments: show clusters, take names, take them away."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch

from inference.command_line.errors import FAILED_FIT
from inference.command_line.name_arguments import Arguments
from inference.command_line.run_data import naming_source, settings_of_run
from inference.naming.folder import FoundRun, Shown, remove_names, restore_unnamed, write_named
from inference.results.files import write_json
from inference.results.run_folder import RunFolder
from inference.results.terminal import summary_table

__all__ = ["name"]


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
            write_named(found, result, folder, arguments.names)
            return _told(result.summary, folder, arguments)
    target.create(folder.read_config())
    with target.in_use():
        write_named(found, result, target, arguments.names)
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
