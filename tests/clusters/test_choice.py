"""Which start is kept: failures last, then occupied cells, then entropy."""

from __future__ import annotations

import pytest

from causalpima.inference.clusters.clustering import NEAR_TIED_ENTROPY, NEAR_TIED_SHARE, Quality, choose, near_tied

GOOD = Quality(True, 8, 0.05)


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ([GOOD], 0),
        ([Quality(True, 8, 0.06), GOOD], 1),
        ([GOOD, GOOD._replace(entropy=0.049)], 1),
        ([Quality(True, 7, 0.0), GOOD], 1),  # merged clusters have a low entropy
        ([Quality(False, 8, 0.0), GOOD], 1),  # and one that swallowed all has none
        ([Quality(False, 1, 0.0), Quality(False, 3, 0.9), Quality(False, 0, None)], 1),
        ([Quality(False, 0, None), Quality(False, 0, None)], 0),
        ([GOOD, GOOD], 0),
    ],
)
def test_choice(starts: list[Quality], expected: int) -> None:
    assert choose(starts) == expected


def test_nothing_to_choose_from() -> None:
    with pytest.raises(ValueError, match="starts: expected one at least"):
        choose([])


def test_near_tied_starts_are_as_good_but_for_a_margin() -> None:
    inside, outside = NEAR_TIED_ENTROPY * 0.99, NEAR_TIED_ENTROPY * 1.01
    starts = [
        GOOD._replace(entropy=0.05 + outside),
        GOOD,
        GOOD._replace(entropy=0.05 + inside),
        GOOD._replace(entropy=0.05 + inside, n_occupied=7),
        GOOD._replace(entropy=0.05 + inside, is_ok=False),
        GOOD._replace(entropy=None, is_ok=False),
        GOOD,
    ]
    assert near_tied(starts, 1) == [2, 6]


def test_the_margin_grows_with_the_entropy() -> None:
    margin = NEAR_TIED_SHARE * 0.5
    starts = [GOOD._replace(entropy=0.5 + d) for d in (0.0, 0.99 * margin, 1.01 * margin)]
    assert near_tied(starts, 0) == [1]


def test_nothing_ties_with_a_failure() -> None:
    assert near_tied([Quality(False, 3, 0.1), Quality(False, 3, 0.1)], 0) == []
