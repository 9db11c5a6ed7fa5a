"""`python -m inference.prepare`: put a table of samples and the files that it names together to one file.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from causalpima.inference.command_line.command import Command, File, NetcdfFile
from causalpima.inference.data.preparation import options as preparation
from causalpima.inference.data.preparation.prepare import as_json, join_table, make_plan, roles_table, write_samples
from causalpima.inference.reporting.figures.fit import write_missing
from causalpima.inference.store.files import write_json

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


@dataclass(frozen=True)
class Options(preparation.Options):
    """Put a table of samples and the files that it names together to one file for --data of inference.svi.

    The table has a row per sample: its name, paths of images (PNG, JPEG, TIFF) and curves (CSV, TXT, XY), numbers,
    batch, labels, and replicate_of. Paths start from the table's folder. What each column is for is found out and
    shown; a flag names all columns of its role.

    Attributes:
        manifest: Table with a row per sample.
        output: File to write; an older one is replaced.
        json: Write the report to this file, too.
    """

    _: KW_ONLY
    output: NetcdfFile
    json: File | None = None

    @property
    def figure(self) -> Path:
        """The file beside the samples that shows what is missing."""
        return self.output.with_name(f"{self.output.stem}_missing.png")


def run(options: Options) -> int:
    """Put the file together and say what is in it; returns the exit status."""
    plan = make_plan(options)
    print(roles_table(plan), flush=True)
    done = write_samples(plan, options.output)
    write_missing(options.figure, [modality.name for modality in done.modalities], done.observed, done.names)
    if options.json is not None:
        write_json(options.json, as_json(done))
    print(f"{join_table(done)}\nwhat is missing where: {options.figure}")
    return 0


COMMAND = Command("prepare", Options, run, also_writes=lambda options: {"output (its figure)": options.figure})
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
