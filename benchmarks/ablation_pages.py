"""Tables and figures of an ablation for docs/ablations.md, between the markers of the page.

A part of the page stands between `<!-- begin TABLE DATASET -->` and `<!-- end TABLE DATASET -->`; what was there before
is replaced. Figures go into the folder `images` beside the page, the numbers of every fit into the folder `ablations`.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas

from causalpima.inference.ablation.records import Metric, Record, metric_named
from causalpima.inference.ablation.sheets import difference_sheet, failure_lines, markdown, markdown_text, mean_sheet
from causalpima.inference.ablation.table import AblationTable, notes_on_samples, table_of
from causalpima.inference.ablation.writing import draw_metric
from causalpima.inference.findings.drawing import figure_style, save_figure

__all__ = ["gap_table", "put", "write_pages"]

_FIGURES = {"methods": "ari", "tools": "cluster_accuracy", "objectives": "cluster_accuracy", "components": "ari"}
_GAPS = ("meanfield", "paper")


def write_pages(table: str, name: str, root: Path, page: Path) -> None:
    """Write the part of a table and a data set into the page, with its figure and a CSV of every fit.

    Args:
        table: Name of the table.
        name: Name of the data set.
        root: Folder with `TABLE-NAME.jsonl`.
        page: The page; it has the markers.

    Raises:
        ValueError: It has no such markers.
    """
    records = _records(root / f"{table}-{name}.jsonl")
    found = table_of(records, _metrics(records), records[0].cell)
    picture = page.parent / "images" / f"ablations_{table}_{name}.png"
    parts = list(_parts(found, records, picture if _draw(found, _FIGURES[table], picture) else None))
    every_fit = page.parent / "ablations" / f"{table}_{name}.csv"
    _write_fits(records, every_fit)
    parts.append(f"Every fit: [{every_fit.name}](ablations/{every_fit.name})")
    gaps = root / f"gaps-{name}.json"
    if table == "objectives" and gaps.exists():
        parts.append(gap_table(json.loads(gaps.read_text(encoding="utf-8"))))
    shown = "\n\n".join(parts).replace(f"{root}{os.sep}", "")  # reasons of failures name files
    text = put(page.read_text(encoding="utf-8"), f"{table} {name}", shown)
    page.write_text(text, encoding="utf-8")


def _records(path: Path) -> list[Record]:
    return [Record(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _metrics(records: Sequence[Record]) -> list[Metric]:
    return [metric_named(name) for name in dict.fromkeys(name for record in records for name in record.metrics)]


def _parts(table: AblationTable, records: Sequence[Record], picture: Path | None) -> Iterator[str]:
    yield markdown(mean_sheet(table))
    yield markdown(difference_sheet(table))
    failures = failure_lines(records)
    if failures:
        yield "\n".join(f"- {markdown_text(line)}" for line in failures)
    yield from map(markdown_text, notes_on_samples(table))
    if picture is not None:
        yield f"![Every seed of every arm, and paired differences](images/{picture.name})"


def _write_fits(records: Sequence[Record], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"cell": fit.cell, "seed": fit.seed, "status": fit.status, **fit.metrics} for fit in records]
    pandas.DataFrame(rows).to_csv(file, index=False, float_format="%.6g", lineterminator="\n")


def _draw(table: AblationTable, metric: str, file: Path) -> bool:
    shown = next((known for known in table.metrics if known.name == metric), None)
    if shown is None:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    with figure_style():
        save_figure(draw_metric(table, shown), file)
    return True


def gap_table(gaps: Mapping[str, Mapping[str, Any]]) -> str:
    """Measured and predicted gaps by the objective of the fit, mean ± standard deviation over the fits.

    Args:
        gaps: By run, as `objective_gaps.py --json` writes them.
    """
    lines = [
        "Gaps on the held-out samples of every fit, nats per sample: mean ± standard deviation over the fits; the last "
        "column is the largest distance between the two, in standard errors of the draws.",
        "",
        "| trained with | gap | fits | measured | predicted | apart, at most |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for objective in dict.fromkeys(one["trained_with"] for one in gaps.values()):
        own = [one for one in gaps.values() if one["trained_with"] == objective]
        lines += [_gap_row(objective, other, own) for other in _GAPS]
    return "\n".join(lines)


def _gap_row(objective: str, other: str, fits: Sequence[Mapping[str, Any]]) -> str:
    apart = max(abs(one["measured"][other] - one["predicted"][other]) / one["standard_error"][other] for one in fits)
    columns = (_spread([one[kind][other] for one in fits]) for kind in ("measured", "predicted"))
    return f"| {objective} | collapsed − {other} | {len(fits)} | {' | '.join(columns)} | {apart:.1f} |"


def _spread(values: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.4f}{spread}"


def put(page: str, part: str, text: str) -> str:
    """The page with a text between the markers of a part.

    Raises:
        ValueError: It has no such markers.
    """
    begin, end = f"<!-- begin {part} -->", f"<!-- end {part} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"docs: expected a page with the lines {begin} and {end}, got none; add them where it belongs")
    return f"{before}{begin}\n{text}\n{end}{after}"
