"""Lines of a table of checks: what was found, how to take it, and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import scipy

from causalpima.inference.store.text import format_number, is_number, printable, shorten

__all__ = [
    "CLEAR_NATS",
    "FEW_SCORED",
    "UNDECIDED_NATS",
    "Finding",
    "Line",
    "Verdict",
    "counts",
    "gap_text",
    "no_better_than",
    "one_sided_lower",
    "one_sided_upper",
    "permutation_p_value",
    "verdict",
    "verdict_table",
    "worst",
]


FEW_SCORED = 25
"""Of fewer samples a share of right ones has a standard error of up to 0.1 and more: no verdict on calibration."""

Verdict = Literal["passes", "unclear", "fails", "skipped"]

_ORDER: tuple[Verdict, ...] = ("skipped", "passes", "unclear", "fails")
_WIDTH = 100
_NAME = 34
_VERDICT = 9


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Attributes:
        key: Its name for machines, unique in a table.
        name: What was looked at.
        found: What was found, in numbers; for `skipped`, why it was not looked at.
        verdict: `passes`, `unclear`, `fails` or `skipped`.
        advice: What to do; empty where there is nothing to be done.
    """

    key: str
    name: str
    found: str
    verdict: Verdict
    advice: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them."""
        return asdict(self)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several, `skipped` where there is none: what is skipped makes nothing better or worse."""
    return max(verdicts, key=_ORDER.index, default="skipped")


def no_better_than(limit: Verdict, verdict: Verdict) -> Verdict:
    """The verdict, or the limit where that is worse; what is skipped stays so."""
    return verdict if verdict == "skipped" else worst((limit, verdict))


def counts(lines: Sequence[Line]) -> str:
    """`3 pass, 1 unclear, 2 fail, 1 skipped`; the last line of a table."""
    number = {verdict: sum(line.verdict == verdict for line in lines) for verdict in _ORDER}
    words = {"passes": "pass", "unclear": "unclear", "fails": "fail", "skipped": "skipped"}
    return ", ".join(f"{number[verdict]} {word}" for verdict, word in words.items() if number[verdict])  # type: ignore[index]


def verdict_table(lines: Sequence[Line]) -> str:
    """Plain text of at most 100 columns, every line with its verdict, what was found below each other, then advice."""
    return "\n".join(text for line in lines for text in _texts(line))


def _texts(line: Line) -> list[str]:
    head = f"{shorten(line.name, _NAME - 1):<{_NAME}}{line.verdict:<{_VERDICT}}"
    found = _wrapped(line.found)
    advice = _wrapped(line.advice, "→ ") if line.advice else []
    indent = " " * (_NAME + _VERDICT)
    return [head + found[0], *(indent + text for text in (*found[1:], *advice))]


def _wrapped(text: str, first: str = "") -> list[str]:
    width = _WIDTH - _NAME - _VERDICT
    return textwrap.wrap(printable(text), width, initial_indent=first, subsequent_indent=" " * len(first)) or [""]


# Limits of a rate by the number of times that something happened, and p-values by such a number.


def one_sided_upper(number: int, total: int, confidence: float = 0.95) -> float:
    r"""Upper limit of a probability (Clopper and Pearson 1934): $\sum_{k \le x} \binom{n}{k} p^k (1-p)^{n-k} = 1 - c$.

    Args:
        number: How often it happened, x.
        total: Of how many times, n.
        confidence: c.
    """
    return 1.0 if number == total else float(scipy.stats.beta.ppf(confidence, number + 1, total - number))


def one_sided_lower(number: int, total: int, confidence: float = 0.95) -> float:
    """Lower limit of a probability, by symmetry: one minus the upper limit of the opposite.

    Args:
        number: How often it happened.
        total: Of how many times.
        confidence: Of the limit.
    """
    return 1.0 - one_sided_upper(total - number, total, confidence)


def permutation_p_value(observed: float, permuted: np.ndarray) -> float:
    """(1 + permutations with a value at least as large) / (1 + permutations): never 0 (Phipson and Smyth 2010).

    Args:
        observed: The value of the data.
        permuted: Those of the permutations, `[K]`.
    """
    return float((1 + (permuted >= observed).sum()) / (1 + len(permuted)))


# How sure one graph is before the next, in words: the one scale of tables, figures and reports.


UNDECIDED_NATS = 3.0
CLEAR_NATS = 10.0
_TIE = 1e-3


def verdict(gap: float) -> str:
    """`not decided` below 3 nats, `probable` up to 10, `clear` above.

    A difference of BIC approximates the logarithm of a Bayes factor. Kass and Raftery (Bayes factors, J. Am. Stat.
    Assoc. 90, 1995, 773) call natural logarithms below 1 not worth more than a bare mention, 1 to 3 positive, 3 to 5
    strong and above 5 very strong. The scale here is stricter: BIC leaves out terms that do not grow with n, the
    clusters count as given, and the next class is only the first of many.

    Args:
        gap: Difference to the next, in nats of BIC (log-likelihood, not deviance).
    """
    if gap < UNDECIDED_NATS:
        return "not decided"
    return "probable" if gap <= CLEAR_NATS else "clear"


def gap_text(gap: float | None, next_one: str = "the next") -> str:
    """`probable, 7.9 nats ahead of the next`; empty where there is no other."""
    if not is_number(gap):
        return ""
    assert gap is not None
    if gap < _TIE:
        return f"{verdict(gap)}, another is as good"
    return f"{verdict(gap)}, {format_number(gap, 1)} nats ahead of {next_one}"


# What one diagnostic found: plain values for machines, lines for people.


@dataclass(frozen=True)
class Finding:
    """One entry of the result.

    Attributes:
        lines: Lines of the table.
        values: Plain values by the key of the result that they belong to.
    """

    lines: tuple[Line, ...]
    values: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def skipped(cls, key: str, name: str, reason: str, advice: str = "") -> Finding:
        """One line that says why there is nothing."""
        return cls((Line(key, name, reason, "skipped", advice),), {})
