"""Pendulum, light and shadow: geometry by ray tracing, drawing, the graph and its independences, the ceiling."""

from __future__ import annotations

from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy.stats import chi2, norm

from causalpima.examples.pendulum import draw_scenes, pendulum, pendulum_network, shadow, state_means
from causalpima.inference.data.validation import validate

NODES = ("angle", "light", "length", "position")
SCALES = {"angle": 4.0, "light": 2.5, "length": 0.1, "position": 0.12}


@pytest.mark.parametrize("levels", [2, 3])
def test_data_keep_the_contract(levels: int) -> None:
    data = pendulum(60, seed=3, levels=levels)
    validate(data)
    assert data.name == ("pendulum" if levels == 2 else "pendulum_3")
    assert data.modalities["image"].shape == (60, 32, 32, 3)
    assert data.modalities["image"].min() == 0
    assert 0.9 < data.modalities["image"].max() <= 1
    assert [len(data.factor_levels[name]) for name in NODES] == [levels, levels, 2, 2]


def test_seed_decides_and_first_samples_do_not_depend_on_their_number() -> None:
    few, many, other = (pendulum(n, seed=seed).modalities["image"] for n, seed in [(20, 1), (90, 1), (20, 2)])
    np.testing.assert_array_equal(few, many[:20])
    assert not np.array_equal(few, other)


@pytest.mark.parametrize(("angle", "light"), [(-25.0, 5.0), (-25.0, 40.0), (15.0, 5.0), (15.0, 40.0), (70.0, 20.0)])
def test_shadow_is_where_rays_through_the_rod_meet_the_ground(angle: float, light: float) -> None:
    along = np.linspace(0, 1, 501)
    x, y = along * np.sin(np.radians(angle)), 1.4 - along * np.cos(np.radians(angle))
    travelled = y / np.cos(np.radians(light))
    ground = x + travelled * np.sin(np.radians(light))
    length, position = shadow(np.array(angle), np.array(light))
    assert length == pytest.approx(np.ptp(ground), rel=1e-12)
    assert position == pytest.approx((ground.min() + ground.max()) / 2, rel=1e-12)


def test_no_shadow_where_the_rod_points_at_the_light() -> None:
    assert shadow(np.array(30.0), np.array(30.0))[0] == pytest.approx(0, abs=1e-15)


def test_light_from_above_projects_straight_down() -> None:
    length, position = shadow(np.array(30.0), np.array(0.0))
    np.testing.assert_allclose([length, position], [0.5, 0.25])


@pytest.mark.parametrize("levels", [2, 3])
def test_tables_follow_the_geometry(levels: int) -> None:
    network, means = pendulum_network(levels), state_means(levels)
    for a, b in product(range(levels), repeat=2):
        length, position = shadow(means["angle"][a], means["light"][b])
        assert network.tables["length"][a, b, 1] == pytest.approx(1 / (1 + np.exp(-(length - 0.5) / 0.25)))
        assert network.tables["position"][a, b, 1] == pytest.approx(1 / (1 + np.exp(-(position - 0.4) / 0.25)))


# angle  light
#   |  \/  |
#   |  /\  |
# length  position
EDGES = {(0, 2), (0, 3), (1, 2), (1, 3)}


def test_adjacency_is_read_from_cause_to_effect() -> None:
    assert {(int(i), int(j)) for i, j in np.argwhere(pendulum_network().adjacency)} == EDGES
    np.testing.assert_array_equal(pendulum(5).true_adjacency, pendulum_network().adjacency)


def colliders(edges: set[tuple[int, int]]) -> set[tuple[int, int, int]]:
    """Unshielded: a -> c <- b without an edge between a and b."""
    joined = {frozenset(edge) for edge in edges}
    return {
        (a, b, c)
        for (a, c), (b, other) in product(edges, repeat=2)
        if c == other and a < b and frozenset((a, b)) not in joined
    }


def test_every_edge_is_compelled() -> None:
    """Of all orientations of the four edges, the true one alone has its colliders."""
    orientations = [set(edges) for edges in product(*[((a, b), (b, a)) for a, b in EDGES])]
    assert [edges for edges in orientations if colliders(edges) == colliders(EDGES)] == [EDGES]


def information(joint: np.ndarray, a: int, b: int, given: tuple[int, ...]) -> float:
    """I(a; b | given), nats."""
    others = tuple(set(range(4)) - {a, b, *given})
    joint = joint.sum(others, keepdims=True)
    parts = joint.sum(b, keepdims=True) * joint.sum(a, keepdims=True)
    return float((joint * np.log(joint * joint.sum((a, b), keepdims=True) / parts)).sum())


@pytest.mark.parametrize("levels", [2, 3])
def test_exactly_the_independences_of_the_dag_hold(levels: int) -> None:
    joint = pendulum_network(levels).joint
    found = {
        (a, b, given)
        for a, b in combinations(range(4), 2)
        for given in chain.from_iterable(combinations(sorted({0, 1, 2, 3} - {a, b}), size) for size in range(3))
        if information(joint, a, b, given) < 1e-3
    }
    assert found == {(0, 1, ()), (2, 3, (0, 1))}


@pytest.mark.parametrize("levels", [2, 3])
def test_cells_are_as_frequent_as_the_joint_says(levels: int) -> None:
    data, joint = pendulum(2000, seed=11, levels=levels), pendulum_network(levels).joint
    counts = np.zeros(joint.shape)
    np.add.at(counts, tuple(data.factors.values()), 1)
    assert ((counts - 2000 * joint) ** 2 / (2000 * joint)).sum() < chi2.ppf(1 - 1e-4, df=joint.size - 1)
    np.testing.assert_array_equal(data.true_joint, joint)


def test_numbers_are_normal_around_the_mean_of_their_level() -> None:
    data, means = pendulum(1000, seed=5), state_means()
    standardised = np.stack(
        [(data.measurements[name] - means[name][data.factors[name]]) / SCALES[name] for name in NODES]
    )
    assert np.all(np.abs(standardised.mean(1)) < 4 / np.sqrt(1000))
    squares = (standardised**2).sum(1)
    assert np.all((chi2.ppf(5e-5, 1000) < squares) & (squares < chi2.ppf(1 - 5e-5, 1000)))
    assert np.abs(np.corrcoef(standardised) - np.eye(4)).max() < 4 / np.sqrt(1000)


def scene(angle: float, light: float, length: float, position: float) -> np.ndarray:
    numbers = (np.array([value]) for value in (angle, light, length, position))
    image: np.ndarray = draw_scenes(*numbers)[0]
    return image


def inside(points: np.ndarray, start: tuple[float, float], end: tuple[float, float], half_width: float) -> np.ndarray:
    """Whether points are within a half-width of some of many points of the segment."""
    near = [((points - place) ** 2).sum(-1) < half_width**2 for place in np.linspace(start, end, 100)]
    return np.any(near, axis=0)


def test_pixels_are_covered_areas() -> None:
    """Against counting sub-pixels that lie in each part; thin lines are blurred by anti-aliasing."""
    angle, light, length, position, fine = -20.0, 30.0, 0.8, 0.45, 6
    image = scene(angle, light, length, position)
    steps = (np.arange(32 * fine) + 0.5) * 2.8 / (32 * fine)
    points = np.stack(np.meshgrid(-1.0 + steps, (-0.25 + steps)[::-1]), axis=-1)
    a, b = np.radians(angle), np.radians(light)
    bob, source = (np.sin(a), 1.4 - np.cos(a)), (-0.7 * np.sin(b), 1.4 + 0.7 * np.cos(b))
    hits = {
        "light": inside(points, source, source, 0.2),
        "pendulum": inside(points, (0, 1.4), bob, 0.05) | inside(points, bob, bob, 0.2),
        "shadow": inside(points, (position - length / 2, 0), (position + length / 2, 0), 0.1),
    }
    drawn = {"light": image[:9, :, 0], "pendulum": image[9:27, :, 1] / 0.8, "shadow": image[27:, :, 2]}
    for (part, pixels), first in zip(drawn.items(), (0, 9, 27), strict=True):
        area = hits[part].reshape(32, fine, 32, fine).mean(axis=(1, 3))[first : first + len(pixels)]
        assert area.sum() == pytest.approx(hits[part].sum() / fine**2)  # all of the part is in these rows
        assert np.abs(pixels - area).max() < 0.3
        assert pixels.sum() == pytest.approx(area.sum(), rel=0.05)


def test_parts_are_where_the_numbers_say() -> None:
    image = scene(15.0, 35.0, 0.6, 0.5)
    columns = -1.0 + (np.arange(32) + 0.5) * 2.8 / 32
    rows = (-0.25 + (np.arange(32) + 0.5) * 2.8 / 32)[::-1]
    ground = image[rows < 0.17, :, 2].sum(0)
    assert (ground @ columns) / ground.sum() == pytest.approx(0.5, abs=0.01)
    assert 2.8 / 32 * (ground / ground.max()).sum() == pytest.approx(0.6 + 0.1 * np.pi / 2, abs=0.05)  # round ends
    yellow = image[..., 0] - image[..., 2] > 0.3
    assert columns[yellow.any(0)].mean() == pytest.approx(-0.7 * np.sin(np.radians(35)), abs=0.06)
    assert rows[yellow.any(1)].mean() == pytest.approx(1.4 + 0.7 * np.cos(np.radians(35)), abs=0.06)


def test_a_negative_length_is_drawn_as_none() -> None:
    np.testing.assert_array_equal(scene(0, 20, -0.3, 0.5), scene(0, 20, 0, 0.5))


@pytest.mark.parametrize("levels", [2, 3])
def test_ceiling_equals_bayes_rule_sample_by_sample(levels: int) -> None:
    data, means, joint = pendulum(2000, seed=9, levels=levels), state_means(levels), pendulum_network(levels).joint
    densities = [
        joint[cell]
        * np.prod(
            [
                norm.pdf(data.measurements[name], means[name][level], SCALES[name])
                for name, level in zip(NODES, cell, strict=True)
            ],
            axis=0,
        )
        for cell in product(*map(range, joint.shape))
    ]
    hits = np.argmax(densities, axis=0) == np.ravel_multi_index(tuple(data.factors.values()), joint.shape)
    assert data.bayes_ceiling == hits.mean() < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: expected at least 1, got 0"),
        ({"seed": -1}, "seed: expected a non-negative integer, got -1"),
        ({"levels": 4}, "levels: expected 2 or 3, got 4"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pendulum(**arguments)
