"""Generated lattices: cells, density, curves, pictures against brute force, and the Bayes ceiling."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

from causalpima.examples.lattices import (
    MAX_MISSING,
    STRAIN,
    Truth,
    bayes_ceiling,
    draw_views,
    gyroid_occupancy,
    lattices,
    octet_occupancy,
    piecewise_linear,
    render_lattices,
    true_adjacency,
    true_curve_parameters,
    true_joint,
)
from causalpima.inference.data.validation import validate

# type, quality -> relative density and p(bad | type), written out again
DENSITY = {(0, 0): 0.25, (0, 1): 0.21, (1, 0): 0.25, (1, 1): 0.2375}
TRUTHS: list[Truth] = ["independent", "edge"]


def test_data_keep_the_contract() -> None:
    data = lattices(50, seed=3, side=16)
    validate(data)
    assert (data.name, data.n_samples) == ("lattices", 50)
    assert dict(data.kinds) == {"image": "image", "curve": "curve"}
    assert data.modalities["image"].shape == (50, 16, 16, 1)
    assert data.modalities["curve"].shape == (50, 100)
    assert all(values.dtype == np.float32 for values in data.modalities.values())
    assert data.modalities["image"].min() >= 0.0
    assert data.modalities["image"].max() <= 1.0
    assert (data.axes["curve"].name, data.axes["curve"].unit, data.units["curve"]) == ("strain", "", "MPa")
    assert data.factor_levels == {"type": ("gyroid", "octet"), "quality": ("good", "bad")}


def test_the_default_is_the_size_of_the_paper() -> None:
    data = lattices()
    assert data.n_samples == 91
    assert data.modalities["image"].shape[1:] == (32, 32, 1)


def test_the_seed_alone_decides_and_first_samples_stay() -> None:
    first, again, many, other = lattices(20, 5), lattices(20, 5), lattices(150, 5), lattices(20, 6)
    for name in ("image", "curve"):
        np.testing.assert_array_equal(first.modalities[name], again.modalities[name])
        np.testing.assert_array_equal(first.modalities[name], many.modalities[name][:20])
        assert not np.array_equal(first.modalities[name], other.modalities[name])


@pytest.mark.parametrize("truth", TRUTHS)
def test_cells_are_as_frequent_as_the_joint_says(truth: Truth) -> None:
    data = lattices(2000, seed=11, side=8, truth=truth)
    counts = np.zeros((2, 2))
    np.add.at(counts, tuple(data.factors.values()), 1)
    bad = {"independent": (0.4, 0.4), "edge": (0.2, 0.65)}[truth]
    expected = 1000 * np.array([[1 - bad[0], bad[0]], [1 - bad[1], bad[1]]])
    np.testing.assert_allclose(2000 * true_joint(truth), expected)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-4, df=3)
    assert data.name == ("lattices" if truth == "independent" else "lattices_edge")


@pytest.mark.parametrize("truth", TRUTHS)
def test_an_edge_is_there_where_the_joint_is_no_product(truth: Truth) -> None:
    joint = true_joint(truth)
    is_product = np.allclose(joint, joint.sum(1, keepdims=True) * joint.sum(0))
    np.testing.assert_array_equal(true_adjacency(truth), [[0, 0 if is_product else 1], [0, 0]])


def test_planted_parameters_are_those_of_gibson_and_ashby() -> None:
    found = true_curve_parameters()
    for (kind, quality), density in DENSITY.items():
        modulus = 2000 * (0.3 * density**2, density / 9)[kind]
        strength = 60 * 0.3 * (density**1.5, density)[kind]
        assert found["slope_1"][kind, quality] == pytest.approx(modulus, rel=1e-12)
        assert found["slope_2"][kind, quality] == pytest.approx((0.25, 0.1)[kind] * modulus, rel=1e-12)
        assert found["inflection"][kind, quality] == pytest.approx(strength / modulus, rel=1e-12)
        assert STRAIN[10] < found["inflection"][kind, quality] < STRAIN[-10]


def test_density_and_law_scatter_by_three_per_cent() -> None:
    data = lattices(2000, seed=4, side=8)
    kind, quality = data.factors["type"], data.factors["quality"]
    density = data.measurements["relative_density"]
    centre = np.array([DENSITY[cell] for cell in zip(kind, quality, strict=True)])
    assert_normal(np.log(density / centre), 0.03)
    modulus = 2000 * np.where(kind == 0, 0.3 * density**2, density / 9)
    knee = np.where(kind == 0, 0.03 / np.sqrt(density), 0.081)
    assert_normal(np.log(data.measurements["slope_1"] / modulus), 0.03)
    assert_normal(np.log(data.measurements["slope_2"] / modulus / np.where(kind == 0, 0.25, 0.1)), 0.03)
    assert_normal(np.log(data.measurements["inflection"] / knee), 0.03)


def assert_normal(values: np.ndarray, scale: float) -> None:
    """Mean and sum of squares lie where all but about 1 in 10,000 samples of that centred normal have them."""
    n = values.size
    assert abs(values.mean()) < 4 * scale / np.sqrt(n)
    assert chi2.ppf(5e-5, n) < ((values / scale) ** 2).sum() < chi2.ppf(1 - 5e-5, n)


def test_curves_are_two_lines_through_the_origin_and_noise() -> None:
    data = lattices(400, seed=9, side=8)
    knee, slope_1, slope_2 = (data.measurements[name][:, None] for name in ("inflection", "slope_1", "slope_2"))
    before = slope_1 * STRAIN
    after = slope_1 * knee + slope_2 * (STRAIN - knee)
    assert_normal(data.modalities["curve"] - np.where(knee > STRAIN, before, after), 0.05)


def test_piecewise_linear_by_hand() -> None:
    found = piecewise_linear(np.array([0.0, 0.1, 0.2, 0.4]), np.array([0.2]), np.array([10.0]), np.array([-1.0]))
    np.testing.assert_allclose(found, [[0.0, 1.0, 2.0, 1.8]])


def test_gyroid_is_the_share_of_the_depth_above_its_level() -> None:
    rng = np.random.default_rng(0)
    depth = (np.arange(4000) + 0.5) / 4000 * 2 * np.pi
    for density in (0.1, 0.25, 0.5):
        place = rng.random((2, 300))
        found = gyroid_occupancy(place[0], place[1], np.array(density))
        x, y = 2 * np.pi * place[..., None]
        field = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(depth) + np.sin(depth) * np.cos(x)
        # The level whose volume is the density, from the whole cell.
        grid = (np.arange(60) + 0.5) / 60 * 2 * np.pi
        a, b, c = np.meshgrid(grid, grid, grid, indexing="ij")
        cell = np.sin(a) * np.cos(b) + np.sin(b) * np.cos(c) + np.sin(c) * np.cos(a)
        level = np.quantile(cell, 1 - density)
        np.testing.assert_allclose(found, (field >= level).mean(axis=1), atol=0.02)
        assert found.mean() == pytest.approx(density, abs=4 * found.std() / np.sqrt(300))


def octet_lines() -> list[tuple[np.ndarray, np.ndarray]]:
    """All lines of struts that pass near the unit cell: a point and a unit direction each, every line once."""
    corners = np.array(list(product(range(-2, 4), repeat=3)), dtype=float)
    shifts = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    nodes = (corners[:, None] + shifts).reshape(-1, 3)
    lines = []
    for direction in ([1, 1, 0], [1, -1, 0], [1, 0, 1], [1, 0, -1], [0, 1, 1], [0, 1, -1]):
        unit = np.array(direction) / np.sqrt(2)
        feet = nodes - (nodes @ unit)[:, None] * unit
        lines += [(foot, unit) for foot in np.unique(feet.round(9), axis=0)]
    return lines


def test_octet_counts_the_struts_that_a_ray_meets() -> None:
    density = 0.2
    radius = np.sqrt(density / (12 * np.sqrt(2) * np.pi))
    place = np.random.default_rng(1).random((2, 24))
    depth = (np.arange(1000) + 0.5) / 1000
    points = np.stack(
        [np.broadcast_to(part, (24, 1000)) for part in (place[0][:, None], place[1][:, None], depth)], axis=-1
    )
    count = np.zeros((24, 1000))
    for foot, unit in octet_lines():
        apart = points - foot
        count += (apart**2).sum(-1) - (apart @ unit) ** 2 < radius**2
    assert count.max() >= 1
    found = octet_occupancy(place[0], place[1], np.array(density))
    np.testing.assert_allclose(found, np.minimum(count.mean(axis=1), 1.0), atol=0.005)


def test_octet_occupancy_integrates_to_the_textbook_density() -> None:
    position = (np.arange(2000) + 0.5) / 2000
    for density in (0.002, 0.01):  # so thin that no sum is clipped
        found = octet_occupancy(position[:, None], position, np.array(density))
        assert found.mean() == pytest.approx(density, rel=5e-3)
        assert found.max() < 1.0


def test_missing_struts_are_as_many_as_the_quality_says() -> None:
    data = lattices(2000, seed=2, side=8)
    missing, bad = data.measurements["missing_struts"], data.factors["quality"] == 1
    for of_quality, probability in ((~bad, 0.05), (bad, 0.5)):
        n = MAX_MISSING * of_quality.sum()
        low, high = binom.ppf([5e-5, 1 - 5e-5], n, probability)
        assert low <= missing[of_quality].sum() <= high


@pytest.mark.parametrize("octet", [0, 1])
def test_a_gap_lies_along_its_strut_and_nowhere_else(octet: int) -> None:
    views = draw_views(1, np.random.default_rng(0))
    views.offset[:], views.gain[:] = 0.0, 1.0
    views.gaps[0, 0], views.directions[0, 0] = (0.5, 1.0), (0.5, 0.5)

    def draw(missing: int) -> np.ndarray:
        kind, density, count = np.array([octet]), np.array([0.9]), np.array([missing])
        return render_lattices(kind, density, count, views, 64, np.random.default_rng(1))[0, ..., 0]

    position = (np.arange(64) + 0.5) / 32
    down, right = position[:, None] - 0.5, position - 1.0
    along = np.clip(down + right, 0.0, 1.0) / 2  # the foot on the strut has both coordinates equal
    distance = np.hypot(down - along, right - along)
    change = draw(0) - draw(1)
    assert np.abs(change[distance > 0.3]).max() < 1e-3
    assert change[distance < 0.05].min() > 0.1
    assert change.min() > -1e-6


def test_ceiling_is_the_rule_of_bayes() -> None:
    data = lattices(300, seed=7, side=8, truth="edge")
    density, missing = data.measurements["relative_density"], data.measurements["missing_struts"]
    hits = 0
    for row in range(300):
        kind = int(data.factors["type"][row])
        weights = [
            true_joint("edge")[kind, quality]
            * norm.pdf(np.log(density[row]), np.log(DENSITY[kind, quality]), 0.03)
            * binom.pmf(missing[row], 6, (0.05, 0.5)[quality])
            for quality in (0, 1)
        ]
        hits += int(np.argmax(weights) == data.factors["quality"][row])
    assert data.bayes_ceiling == pytest.approx(hits / 300, abs=1e-12)
    assert bayes_ceiling(data.factors, density, missing, "edge") == data.bayes_ceiling


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: expected at least 1, got 0"),
        ({"side": 7}, "side: expected at least 8, got 7"),
        ({"seed": -1}, "seed: expected a non-negative integer, got -1"),
        ({"truth": "collider"}, "truth: expected one of independent, edge, got 'collider'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lattices(**arguments)  # type: ignore[arg-type]
