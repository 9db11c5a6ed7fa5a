"""`python -m inference.prepare`: put a table of samples and the files that it names together to one file.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from jsonargparse import ArgumentParser

from causalpima.inference.command_line.files import check_netcdf_name
from causalpima.inference.command_line.parsing import command_parser, parse_in_plain_words, run_command
from causalpima.inference.command_line.words import optional_path
from causalpima.inference.data.preparation.options import CurveOrder, ImageFit, Options
from causalpima.inference.data.preparation.prepare import as_json, join_table, make_plan, roles_table, write_samples
from causalpima.inference.reporting.figures.fit import write_missing
from causalpima.inference.store.files import write_json

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.prepare`, checked.


_USAGE = "python -m inference.prepare SAMPLES.csv --output SAMPLES.nc [--FLAG VALUE ...]"
_DESCRIPTION = """\
Put a table of samples and the files that it names together to one file for --data.

The table has a row per sample: its name, paths of images (PNG, JPEG, TIFF) and curves (CSV, TXT, XY), numbers, batch,
labels, and replicate_of. Paths start from the table's folder. What each column is for is found out and shown; a flag
names all columns of its role, `none` for no column.
"""
_LISTS = {
    "images": "Paths of images.",
    "curves": "Paths of curves.",
    "scalars": "Numbers that are measurements.",
    "labels": "Known factors, for evaluation only.",
    "covariates": "Batch, instrument and the like, which decoders see.",
}
_MOST_PIXELS = 65536
_MOST_POINTS = 10**6


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        options: Choices of the preparation.
        output: File of samples to write.
        json: File for the report, or None.
    """

    options: Options
    output: Path
    json: Path | None

    @property
    def figure(self) -> Path:
        """Where the picture of what is missing goes."""
        return missing_figure(self.output)


def missing_figure(output: Path) -> Path:
    """The file beside the samples that shows what is missing."""
    return output.with_name(f"{output.stem}_missing.png")


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(
        _build_parser(), argv, _missing, lambda found: {"output (its figure)": missing_figure(Path(found.output))}
    )
    options = _options(vars(found))
    arguments = Arguments(options, Path(found.output), optional_path(found.json))
    _check_files(arguments)
    return arguments


def _build_parser() -> ArgumentParser:
    parser = command_parser("prepare", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("manifest", type=str, metavar="SAMPLES.csv", help="Table with a row per sample.")
    add("--output", type=str, required=True, metavar="FILE.nc", help="File to write; an older one is replaced.")
    add("--json", type=str, metavar="FILE", help="Write the report to this file, too.")
    _add_roles(parser)
    add("--image_size", type=str, metavar="HxW", help="Pixels; default the commonest size, shrunk to at most 128.")
    add(
        "--image_fit",
        choices=get_args(ImageFit),
        default="crop",
        help="Images of another shape: crop the centre, pad with missing pixels, or stretch.",
    )
    add(
        "--grid_points",
        type=str,
        metavar="N",
        help="Positions of a curve; default the median of the files', at most 256.",
    )
    add(
        "--curve_x",
        type=str,
        metavar="COLUMN",
        help="Position in curve files: name, or number from 1; default the first column that does not count the rows.",
    )
    add("--curve_y", type=str, metavar="COLUMN", help="Value in curve files: name, or number; default the next one.")
    add(
        "--curve_order",
        choices=get_args(CurveOrder),
        default="refuse",
        help="Positions that go back by over 1 %% of the range: refuse the curve, sort, or cut at the largest.",
    )
    add(
        "--decimal",
        choices=(".", ","),
        help="Decimal sign of the table and the curve files; default found out for each column.",
    )
    return parser


def _add_roles(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--id", type=str, metavar="COLUMN", help="Names of the samples.")
    for flag, what in _LISTS.items():
        add(f"--{flag}", type=str, metavar="COLUMN,..", help=what)
    add("--group", type=str, metavar="COLUMN", help="What must stay on one side of a split.")
    add("--ignore", type=str, metavar="COLUMN,..", help="Columns to leave out.")


def _options(found: Mapping[str, Any]) -> Options:
    """The options, with what stands in one word taken apart."""
    chosen = {field.name: found[field.name] for field in dataclasses.fields(Options)}
    lists = {flag: _names(flag, chosen[flag]) for flag in (*_LISTS, "ignore")}
    size, points = _size(found["image_size"]), _points(found["grid_points"])
    chosen |= {**lists, "manifest": Path(found["manifest"]), "image_size": size, "grid_points": points}
    return Options(**{**chosen, "ignore": lists["ignore"] or ()})


def _names(flag: str, text: str | None) -> tuple[str, ...] | None:
    words = None if text is None else tuple(word.strip() for word in text.split(","))
    if words == ("none",):
        return ()
    if words is not None and not all(words):
        raise ValueError(f"{flag}: expected names of columns with commas between them, or none, got {text!r}")
    return words


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)x(\d+)", text.lower())
    size = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(1 <= side <= _MOST_PIXELS for side in size):
        raise ValueError(
            f"image_size: expected height x width, of 1 to {_MOST_PIXELS} pixels, for example 64x96, got {text}"
        )
    return size


def _points(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}", text) or not 2 <= int(text) <= _MOST_POINTS:
        raise ValueError(f"grid_points: expected a whole number from 2 to {_MOST_POINTS}, got {text}")
    return int(text)


def _missing(message: str) -> str:
    if "output" in message and "manifest" not in message:
        return "output: expected a file to write, for example --output samples.nc, got none"
    return f"manifest: expected the table of samples, got none; {_USAGE}"


def _check_files(arguments: Arguments) -> None:
    """Refuse a file that would be written over another one that is needed, or whose name says another format."""
    check_netcdf_name(arguments.output)
    written = [arguments.output, arguments.figure]
    if arguments.json is not None:
        written.append(arguments.json)
    absolute = [path.absolute() for path in (*written, arguments.options.manifest)]
    if len(set(absolute)) < len(absolute):
        raise ValueError(
            "json: expected a file of its own for the report, got one that is read or written, too; name another"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("prepare", _command, argv)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    plan = make_plan(arguments.options)
    print(roles_table(plan), flush=True)
    done = write_samples(plan, arguments.output)
    names = [modality.name for modality in done.modalities]
    write_missing(arguments.figure, names, done.observed, done.names)
    if arguments.json is not None:
        write_json(arguments.json, as_json(done))
    print(f"{join_table(done)}\nwhat is missing where: {arguments.figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
