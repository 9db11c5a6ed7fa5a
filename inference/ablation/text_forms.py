"""The sheets of an ablation as text of limited width, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inference.results.page.parts import Table

__all__ = ["latex", "markdown", "plain"]

_WIDTH = 100
_LATEX_WIDTH = 85
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
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def plain(table: Table, width: int = _WIDTH) -> str:
    """Columns side by side; those that do not fit into the width go into blocks below, with the names again."""
    blocks = [[_column(table, i) for i in block] for block in _blocks(table, width)]
    return "\n\n".join([table.caption, *map(_block, blocks)])


def _column(table: Table, i: int) -> list[str]:
    return [table.head[i], *(row[i] for row in table.rows)]


def _blocks(table: Table, width: int) -> list[list[int]]:
    """Columns of each block; every one begins with the first, and has at least one more."""
    widths = [max(map(len, _column(table, i))) for i in range(len(table.head))]
    blocks = [[0]]
    for i in range(1, len(widths)):
        used = sum(widths[j] + 2 for j in blocks[-1])
        if len(blocks[-1]) > 1 and used + widths[i] > width:
            blocks.append([0])
        blocks[-1].append(i)
    return blocks


def _block(columns: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in zip(*columns, strict=True):
        rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def markdown(table: Table) -> str:
    """A table of GitHub's Markdown, below its caption."""
    lines = [_markdown_row(table.head), "|---|" + "---:|" * (len(table.head) - 1), *map(_markdown_row, table.rows)]
    return "\n".join([_markdown_text(table.caption), "", *lines])


def _markdown_row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(map(_markdown_text, texts)) + " |"


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", text)


def latex(table: Table) -> str:
    """Tables for `booktabs`: columns that do not fit on a page go into further ones, with the names again."""
    return "\n\n".join(_latex_table(table, block) for block in _blocks(table, _LATEX_WIDTH))


def _latex_table(table: Table, columns: Sequence[int]) -> str:
    rows = [_latex_row([row[i] for i in columns]) for row in table.rows]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{_latex_text(table.caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
            r"\toprule",
            _latex_row([table.head[i] for i in columns]),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(map(_latex_text, texts)) + r" \\"


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
