"""Read-outs that keep to labels: by hand, and on clusters that labels follow or do not."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.clusters.clustering import (
    ReadOut,
    centred,
    keep_allowed,
    observed_nodes,
    read_out_round,
    split_by_outcomes,
)
from causalpima.inference.clusters.labels import UNKNOWN, allowed_cells


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([[0, 1], [1, 2]], (0, 1)),
        ([[0, UNKNOWN], [1, 2]], (0,)),
        ([[UNKNOWN, 0], [UNKNOWN, 1]], (1,)),
        ([[UNKNOWN, UNKNOWN], [1, 1]], ()),
    ],
)
def test_nodes_that_all_samples_tell(codes: list[list[int]], expected: tuple[int, ...]) -> None:
    assert observed_nodes(allowed_cells(np.array(codes), (2, 3)), (2, 3)) == expected


def test_mass_outside_is_taken_away_and_the_rest_kept_in_proportion() -> None:
    r = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4]])
    found = ReadOut(r, np.array([0, 0, 1, 2]), 3, ())
    allowed = np.array([[True, False, False], [False, True, True]])
    kept = keep_allowed(found, allowed, np.zeros((2, 1)))
    np.testing.assert_allclose(kept.responsibilities, [[5 / 8, 3 / 8, 0, 0], [0, 0, 3 / 7, 4 / 7]])


def test_a_sample_that_is_lost_goes_to_the_nearest_allowed_component() -> None:
    embedding = np.concatenate([np.tile([0.0], 10), np.tile([10.0], 10), np.tile([14.0], 10), [9.0]])[:, None]
    embedding[:-1, 0] += np.tile([-0.5, 0.5], 15)
    r = np.zeros((31, 3))
    r[np.arange(31), [*np.repeat([0, 1, 2], 10), 1]] = 1.0
    allowed = np.ones((31, 3), dtype=bool)
    allowed[-1] = [True, False, True]
    kept = keep_allowed(ReadOut(r, np.arange(3), 3, ()), allowed, embedding)
    assert kept.responsibilities[-1].argmax() == 2
    assert kept.responsibilities[-1, 1] == 0
    np.testing.assert_array_equal(kept.responsibilities[:-1], r[:-1])


def test_a_cell_that_only_labels_have_gets_a_component() -> None:
    found = ReadOut(np.ones((4, 1)), np.array([0]), 2, ())
    allowed = np.array([[True, False]] * 3 + [[False, True]])
    kept = keep_allowed(found, allowed, np.random.default_rng(0).standard_normal((4, 2)))
    np.testing.assert_array_equal(kept.cell_responsibilities, allowed.astype(float))


@pytest.mark.parametrize("observed", [(0,), (1,), (0, 2), (1, 2), (0, 1, 2), ()])
def test_splitting_gives_every_sample_its_outcomes(observed: tuple[int, ...]) -> None:
    outcomes, rng = (2, 3, 2), np.random.default_rng(0)
    truth = np.stack([rng.integers(0, count, 50) for count in outcomes], axis=1)
    rest = [node for node in range(3) if node not in observed]
    shape = [outcomes[node] for node in rest]
    cells = np.ravel_multi_index(tuple(truth[:, rest].T), shape) if rest else np.zeros(50, dtype=int)
    n_hidden = int(np.prod(shape))
    hidden = ReadOut(np.eye(n_hidden)[cells], np.arange(n_hidden), n_hidden, ())
    found = split_by_outcomes(hidden, truth[:, list(observed)], outcomes, observed)
    expected = np.eye(12)[np.ravel_multi_index(tuple(truth.T), outcomes)]
    np.testing.assert_array_equal(found.cell_responsibilities, expected)


def test_a_node_that_clusters_do_not_show_is_no_obstacle_to_the_others() -> None:
    """Four clear clusters, an outcome that moves them by a little: all of eight cells come out right."""
    rng = np.random.default_rng(1)
    group, outcome = rng.integers(0, 4, 400), rng.integers(0, 2, 400)
    embedding = 6.0 * np.eye(4)[group] + rng.standard_normal((400, 4)) + 0.3 * outcome[:, None]
    hidden = read_out_round(centred(embedding, outcome), 4, seed=0)
    found = split_by_outcomes(hidden, outcome[:, None], (4, 2), (1,)).cell_responsibilities.argmax(1)
    assert (found % 2 == outcome).all()
    table = np.zeros((4, 4))
    np.add.at(table, (found // 2, group), 1)
    assert table.max(1).sum() > 390
