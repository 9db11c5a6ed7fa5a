"""The sheets of an ablation as text of limited width, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inference.results.page.parts import Table

__all__ = ["latex", "markdown", "markdown_text", "parts_of", "plain"]

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
