"""The table of an ablation in texts, from which all its forms are made: means, differences, failures."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from causalpima.inference.ablation.records import Metric, Record
from causalpima.inference.ablation.table import (
    CONFIDENCE,
    FEW_SEEDS,
    AblationTable,
    Difference,
    Row,
    Spread,
    notes_on_samples,
)
from causalpima.inference.findings.base import Table
from causalpima.inference.store.text import printable

__all__ = [
    "difference_sheet",
    "digits_of",
    "failure_lines",
    "failures_of",
    "latex",
    "markdown",
    "markdown_text",
    "mean_sheet",
    "means_shown",
    "metric_title",
    "most_pairs",
    "notes",
    "parts_of",
    "plain",
    "settings_sheet",
    "sheets_of",
    "signed",
    "with_minus",
]


_ARROWS = {1: " ↑", -1: " ↓", 0: ""}


def sheets_of(table: AblationTable) -> tuple[Table, ...]:
    """The sheet of means, and that of differences where there are any."""
    return (mean_sheet(table), difference_sheet(table)) if most_pairs(table) else (mean_sheet(table),)


def most_pairs(table: AblationTable) -> int:
    """Most seeds that a difference is over."""
    return max((found.n for row in table.rows for found in row.differences.values()), default=0)


def mean_sheet(table: AblationTable) -> Table:
    """A row per cell: how many fits are ok, how the others ended, and per metric mean ± standard deviation."""
    failed = [failures_of(row) for row in table.rows]
    head = ["cell", "ok", *(["not ok"] if any(failed) else []), *map(metric_title, table.metrics)]
    rows = [
        [
            printable(row.cell),
            f"{row.statuses.get('ok', 0)} of {row.n_fits}",
            *([failures or "-"] if any(failed) else []),
            *(_spread_text(row.spreads[m.name], m, row.n_fits) for m in table.metrics),
        ]
        for row, failures in zip(table.rows, failed, strict=True)
    ]
    spread = "Mean ± standard deviation over" if len(table.seeds) > 1 else "No spread, with"
    return Table(f"{spread} {number_of_seeds(table)}.", head, rows)


def number_of_seeds(table: AblationTable) -> str:
    """How many seeds there are, in words."""
    return f"{len(table.seeds)} seed{'' if len(table.seeds) == 1 else 's'}"


def difference_sheet(table: AblationTable) -> Table:
    """A row per cell but the baseline: mean paired difference and its interval."""
    rows = [
        [printable(row.cell), *(_difference_text(row.differences[m.name], m, len(table.seeds)) for m in table.metrics)]
        for row in table.rows
        if row.cell != table.baseline
    ]
    head = ["cell", *map(metric_title, table.metrics)]
    return Table(f"Difference from {printable(table.baseline)}, paired by seed: mean{_interval(table)}.", head, rows)


def _interval(table: AblationTable) -> str:
    """What is said of intervals: that there are some, that there are none, or where there are none."""
    pairs = [found.n for row in table.rows for found in row.differences.values() if found.n]
    interval = f" and {100 * CONFIDENCE:.0f} % bootstrap interval" if max(pairs, default=0) >= FEW_SEEDS else ""
    few = f"; fewer than {FEW_SEEDS} seeds have no interval and tell little"
    return interval + (few if min(pairs, default=0) < FEW_SEEDS else "")


def means_shown(numbers: Iterable[Collection[int]]) -> str:
    """What figures show of means: `means with 95 % bootstrap intervals`, where there are enough seeds.

    Args:
        numbers: What the means are of, each with its seeds.
    """
    counts = [len(found) for found in numbers if found]
    if max(counts, default=0) < FEW_SEEDS:
        return f"means (fewer than {FEW_SEEDS} seeds have no interval)"
    interval = f"means with {100 * CONFIDENCE:.0f} % bootstrap intervals"
    return interval + (f" (fewer than {FEW_SEEDS} seeds have none)" if min(counts) < FEW_SEEDS else "")


def settings_sheet(table: AblationTable) -> list[Table]:
    """What distinguishes cells whose names do not say it; none where all do."""
    settings = {row.cell: ", ".join(f"{flag}={value}" for flag, value in row.flags.items()) for row in table.rows}
    if all(cell == words.replace(", ", ",") for cell, words in settings.items()):
        return []
    rows = [[printable(cell), printable(words) or "-"] for cell, words in settings.items()]
    return [Table("", ["cell", "settings"], rows, is_numeric=False)]


def metric_title(metric: Metric) -> str:
    """Its label, with an arrow to where it is better."""
    return printable(metric.label) + _ARROWS[metric.better]


def failures_of(row: Row) -> str:
    """How many fits ended otherwise than well, and how: `1 collapsed, 2 refused`."""
    return ", ".join(f"{count} {status}" for status, count in row.statuses.items() if status != "ok" and count)


def _spread_text(found: Spread, metric: Metric, n_fits: int) -> str:
    if found.mean is None:
        return "-"
    spread = "" if found.sd is None else f" ± {found.sd:.{metric.digits}f}"
    return f"{with_minus(found.mean, metric.digits)}{spread}{'' if found.n == n_fits else f' (n={found.n})'}"


def _difference_text(found: Difference, metric: Metric, n_seeds: int) -> str:
    if found.mean is None:
        return "-"
    digits = digits_of(found, metric)
    few = f" (n={found.n})" if found.n < n_seeds else ""
    if found.lower is None or found.upper is None:
        return f"{signed(found.mean, digits)}{few}"
    return f"{signed(found.mean, digits)} [{signed(found.lower, digits)}, {signed(found.upper, digits)}]{few}"


def digits_of(found: Difference, metric: Metric) -> int:
    """Decimal places of a difference: those of its metric, more where its interval would seem to hold zero otherwise.

    Args:
        found: The difference.
        metric: What it is one of.
    """
    if found.lower is None or found.upper is None or found.lower <= 0 <= found.upper:
        return metric.digits
    nearest = min(abs(found.lower), abs(found.upper))
    return max(metric.digits, math.floor(-math.log10(2 * nearest)) + 1)


def with_minus(value: float, digits: int) -> str:
    """With a minus that is as wide as a plus, and none before zero.

    >>> with_minus(-1.25, 1), with_minus(-0.01, 1)
    ('−1.2', '0.0')
    """
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float, digits: int) -> str:
    """With its sign, but for what is zero in the digits shown."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def failure_lines(records: Sequence[Record]) -> list[str]:
    """One line per cell and reason: which seeds ended otherwise than well."""
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for record in records:
        if record.status != "ok":
            grouped.setdefault((record.cell, record.status, record.reason), []).append(record.seed)
    return [
        printable(f"{cell}: {status}, seed {', '.join(map(str, seeds))}: {reason}")
        for (cell, status, reason), seeds in grouped.items()
    ]


# The sheets of an ablation as text of limited width, Markdown and LaTeX.


_WIDTH = 100
_LATEX_WIDTH = 85
_GREEK = (
    "α alpha, β beta, γ gamma, δ delta, ε varepsilon, ζ zeta, η eta, θ theta, ι iota, κ kappa, λ lambda, μ mu, ν "
    "nu, ξ xi, π pi, ρ rho, σ sigma, τ tau, υ upsilon, φ varphi, χ chi, ψ psi, ω omega, Γ Gamma, Δ Delta, Θ "
    "Theta, Λ Lambda, Ξ Xi, Π Pi, Σ Sigma, Φ Phi, Ψ Psi, Ω Omega"
)
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "±": r"$\pm$",
    "−": "$-$",
    "²": "$^2$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "|": r"\textbar{}",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{letter: rf"$\{name}$" for letter, name in re.findall(r"(\w) (\w+)", _GREEK)},
}


def plain(table: Table, width: int = _WIDTH) -> str:
    """Columns side by side; those that do not fit into the width go into blocks below, with the names again."""
    blocks = [[_column(table, i) for i in block] for block in _blocks(table, width)]
    is_right = table.is_numeric
    return "\n\n".join([*([table.caption] if table.caption else []), *(_block(block, is_right) for block in blocks)])


def _column(table: Table, i: int) -> list[str]:
    return [table.head[i], *(row[i] for row in table.rows)]


def _blocks(table: Table, width: int, n_fixed: int = 1) -> list[list[int]]:
    """Columns of each block; every one begins with the first ones, and has at least one more."""
    widths = [max(map(len, _column(table, i))) for i in range(len(table.head))]
    fixed = list(range(n_fixed))
    blocks = [[*fixed]]
    for i in range(n_fixed, len(widths)):
        used = sum(widths[j] + 2 for j in blocks[-1])
        if len(blocks[-1]) > n_fixed and used + widths[i] > width:
            blocks.append([*fixed])
        blocks[-1].append(i)
    return blocks


def _block(columns: Sequence[Sequence[str]], is_right: bool) -> str:
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in zip(*columns, strict=True):
        rest = (
            text.rjust(width) if is_right else text.ljust(width)
            for text, width in zip(row[1:], widths[1:], strict=True)
        )
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def markdown(table: Table) -> str:
    """A table of GitHub's Markdown, below its caption."""
    lines = [_markdown_row(table.head), "|---|" + "---:|" * (len(table.head) - 1), *map(_markdown_row, table.rows)]
    return "\n".join([markdown_text(table.caption), "", *lines])


def _markdown_row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(map(markdown_text, texts)) + " |"


def markdown_text(text: str) -> str:
    """A text that Markdown shows as it is: no character of it opens a tag, a formula, an entity or a style."""
    return re.sub(r"([\\|*_<>`\[\]~$&])", r"\\\1", text)


def parts_of(table: Table, width: int, n_fixed: int = 1) -> list[Table]:
    """The table in parts that are no wider; the caption stands above the first.

    Args:
        table: The table.
        width: In characters.
        n_fixed: Number of columns that every part begins with.
    """
    blocks = _blocks(table, width, n_fixed)
    return [
        Table(
            "" if n else table.caption,
            [table.head[i] for i in block],
            [[row[i] for i in block] for row in table.rows],
            table.is_numeric,
        )
        for n, block in enumerate(blocks)
    ]


def latex(table: Table, label: str = "ablation") -> str:
    r"""Tables for `booktabs`: columns that do not fit on a page go into further ones, with the names again.

    Args:
        table: The table.
        label: What `\ref` calls the first part, behind `tab:`; the others have their number after it.
    """
    parts = parts_of(table, _LATEX_WIDTH)
    return "\n\n".join(_latex_table(part, table.caption, label, n + 1, len(parts)) for n, part in enumerate(parts))


def _latex_table(part: Table, caption: str, label: str, number: int, n_parts: int) -> str:
    """One part; only the first has the whole caption."""
    first, own = f"tab:{label}", f"tab:{label}" if number == 1 else f"tab:{label}-{number}"
    text = _latex_text(caption) if number == 1 else rf"Table~\ref{{{first}}}, part {number} of {n_parts}."
    columns, rows = part.head, [_latex_row(row) for row in part.rows]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{text}}}\label{{{own}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
            r"\toprule",
            _latex_row(columns),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_row(texts: Sequence[str]) -> str:
    r"""A row; a bracket or star at its beginning would be read as an argument of the `\\` or `\midrule` before it."""
    row = " & ".join(map(_latex_text, texts))
    return (f"{{}}{row}" if row.startswith(("[", "*")) else row) + r" \\"


def _latex_text(text: str) -> str:
    plain_text = "".join(_LATEX.get(character, character) for character in text)
    plain_text = plain_text.replace("--", "-{}-")  # no dash: `--kl_weight` is a flag
    return re.sub(r"\b([Ll])og p\(x\)", lambda found: r"$\log p(x)$", plain_text)


# What a reader of the table of an ablation must know to read its numbers rightly.


def notes(table: AblationTable) -> list[str]:
    """What a reader must know to read the numbers rightly."""
    return list(_notes(table))


def _notes(table: AblationTable) -> Iterator[str]:
    if any(failures_of(row) for row in table.rows):
        yield (
            "Fits that are not ok are counted, not left out: those that collapsed are in the means; those that "
            "diverged, were refused or ended with an error have no numbers, and n says how many are left."
        )
    if most_pairs(table) >= FEW_SEEDS:
        yield "Intervals are of each comparison alone: of twenty about one leaves zero out by chance."
    yield from map(printable, table.remarks)
    yield from notes_on_samples(table)
    yield from _of_nodes(table)
    yield from _units(table)
    if any(metric.name == "objective" for metric in table.metrics):
        yield (
            "The objective of a fit is its own bound, on validation samples where there are some: between different "
            "objectives, priors or data it compares nothing."
        )


def _of_nodes(table: AblationTable) -> Iterator[str]:
    """What scores of nodes are where nobody named them."""
    names = {metric.name for metric in table.metrics}
    if names & {"node_accuracy_mean", "node_accuracy_worst", "cpdag_shd"}:
        yield (
            "Node accuracy, and the SHD by best assignment, are of the assignment of nodes to factors that suits the "
            "truth best: of nodes that nobody named they are no result. Random names reach node_accuracy_chance in the "
            "mean and node_accuracy_worst_chance in the worst node."
        )


def _units(table: AblationTable) -> Iterator[str]:
    """What numbers are in that have no unit in their label."""
    names = {metric.name for metric in table.metrics}
    if names & {"held_out_log_likelihood", "held_out_bound", "held_out_as_trained", "objective"}:
        yield "Log p(x) and bounds are in nats per sample."
    if "entropy" in names:
        yield (
            "Entropy is that of q(N | X) in nats, mean over samples: 0 where every sample is in one cell for certain, "
            "ln of the number of cells where nothing is known. Neither is better in itself."
        )
