"""The samples that stand for a cluster."""

from __future__ import annotations

import numpy as np

from causalpima.inference.analyses.sheet import nearest_to_median


def test_the_first_is_nearest_to_the_median_and_not_to_the_mean() -> None:
    points = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [100.0], [50.0]])
    members = np.array([0, 1, 2, 3, 4, 5])  # the median is 2.5, the mean 18.3
    present = np.ones(7, dtype=bool)
    assert nearest_to_median(points, members, present, 4).tolist() == [2, 3, 1, 4]


def test_dimensions_count_in_their_own_units() -> None:
    points = np.array([[0.0, 0.0], [-1.0, 1000.0], [1.0, -1000.0], [0.0, 400.0], [0.5, 0.0]])
    found = nearest_to_median(points, np.arange(5), np.ones(5, dtype=bool), 3)
    assert found.tolist() == [0, 3, 4], "400 of a spread of 400 is less than 0.5 of 0.5 in both: a tie, in order"


def test_samples_without_the_modality_are_left_out_but_count_for_the_median() -> None:
    points = np.arange(5.0)[:, None]
    present = np.array([True, True, False, False, True])
    assert nearest_to_median(points, np.arange(5), present, 2).tolist() == [1, 0]


def test_an_empty_cluster_has_none() -> None:
    assert nearest_to_median(np.zeros((3, 2)), np.array([], dtype=int), np.ones(3, dtype=bool), 5).size == 0
