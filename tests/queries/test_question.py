"""Questions by names, from the command line."""

from __future__ import annotations

import pytest

from causalpima.inference.analyses.scenarios import pairs_of, read_question

OUTCOMES = {"a": ("0", "1"), "x=y": ("p", "q=r")}


def test_names_may_hold_an_equals_sign() -> None:
    assert pairs_of("do", ["a=1", "x=y=q=r"], OUTCOMES) == {"a": "1", "x=y": "q=r"}
    found = read_question(OUTCOMES, {"x=y": "q=r"}, {"a": 0})
    assert (found.do, found.given) == ({1: 1}, {0: 0})


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a"], "do: expected NODE=OUTCOME, got a; for example a=1"),
        (["a=1", "a=0"], "do: expected every node once, got a twice"),
    ],
)
def test_pairs_that_are_none_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs_of("do", texts, OUTCOMES)
