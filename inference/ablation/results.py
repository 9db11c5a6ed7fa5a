"""Everything that an ablation leaves beside its runs: records, tables in every form, figures, and what it prints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from inference.ablation.best_trial import best_sentence
from inference.ablation.figures import write_figures
from inference.ablation.metrics import Metric
from inference.ablation.notes import notes
from inference.ablation.page import ablation_page, status_line
from inference.ablation.ranges import Range
from inference.ablation.records import Record, write_records
from inference.ablation.sheets import failure_lines, settings_sheet, sheets_of
from inference.ablation.sweep_figure import write_sweep_figure
from inference.ablation.table import AblationTable, csv_text
from inference.ablation.text_forms import latex, markdown, markdown_text, plain
from inference.results.files import write_json, write_text
from inference.results.text import shorten

__all__ = ["terminal_text", "write_results"]

Swept = tuple[Sequence[Range], Metric]

_WIDTH = 100
_MOST_OF_A_REASON = 160


def write_results(
    folder: Path,
    table: AblationTable,
    records: Sequence[Record],
    command: str,
    swept: Swept | None = None,
    origin: Sequence[str] = (),
) -> None:
    """Write `records.jsonl`, `table.csv`, `.json`, `.md`, `.tex`, `.html` and `figures`.

    Args:
        folder: Folder of the ablation.
        table: The table.
        records: All fits.
        command: How it was made.
        swept: What was searched, and what was to be good; None: no sweep.
        origin: Short facts on the data.

    Raises:
        OutputError: The disk is full, or the folder cannot be written to.
    """
    write_records(folder / "records.jsonl", records)
    write_text(folder / "table.csv", csv_text(table))
    write_json(folder / "table.json", table.to_dict())
    write_text(folder / "table.md", _markdown(table, records))
    write_text(folder / "table.tex", _latex(table, records, command, origin))
    figures = write_figures(table, folder / "figures")
    trials = None if swept is None else write_sweep_figure(table, *swept, folder / "figures" / "sweep.png")
    best = None if swept is None else best_sentence(table, swept[1])
    write_text(folder / "table.html", ablation_page(table, records, figures, command, trials, origin, best))


def terminal_text(table: AblationTable, records: Sequence[Record]) -> str:
    """The same for people at a terminal."""
    sheets = [*sheets_of(table), *settings_sheet(table)]
    parts = [status_line(records), *map(plain, sheets), *_paragraphs(table, records)]
    return "\n\n".join(parts)


def _paragraphs(table: AblationTable, records: Sequence[Record]) -> list[str]:
    parts = (failure_lines(records), notes(table))
    return [
        "\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="  ") for line in lines) for lines in parts if lines
    ]


def _markdown(table: AblationTable, records: Sequence[Record]) -> str:
    failures = "\n".join(f"- {markdown_text(line)}" for line in failure_lines(records))
    told = map(markdown_text, notes(table))
    return "\n\n".join([*map(markdown, sheets_of(table)), *([failures] if failures else []), *told]) + "\n"


def _latex(table: AblationTable, records: Sequence[Record], command: str, origin: Sequence[str]) -> str:
    """The caption of the means has the data, the fits that failed and all notes: readers of a paper see no comments."""
    head = [r"% \usepackage{booktabs}", f"% {' '.join(command.split())}"]
    means, *others = sheets_of(table)
    data = [f"Fits of {', '.join(origin)}."] if origin else []
    told = [means.caption, *data, *_short(failure_lines(records)), *notes(table)]
    means = means._replace(caption=" ".join(told))
    sheets = [latex(means, "ablation-means"), *(latex(sheet, "ablation-differences") for sheet in others)]
    return "\n".join([*head, *sheets]) + "\n"


def _short(lines: Sequence[str]) -> list[str]:
    return [f"{shorten(line.rstrip('.'), _MOST_OF_A_REASON)}." for line in lines]
