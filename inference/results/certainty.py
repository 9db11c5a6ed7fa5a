"""How sure one graph is before the next, in words: the one scale of tables, figures and reports."""

from __future__ import annotations

from inference.results.text import format_number, is_number

__all__ = ["CLEAR_NATS", "UNDECIDED_NATS", "gap_text", "verdict"]

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
