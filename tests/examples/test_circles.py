"""The circles: the tree of the paper, the drawing, the variants with edges, and the Bayes ceiling."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2, norm

from causalpima.examples.circle_truths import Truth, true_adjacency, true_joint
from causalpima.examples.circles import Spread, bayes_ceiling, circles, render_discs

TRUTHS: list[Truth] = ["independent", "chain", "fork", "collider", "edge"]


def either(probability: float, value: int) -> float:
    return probability if value else 1 - probability


# Every truth written out as a product of its conditionals.
WRITTEN_OUT: dict[Truth, Callable[[int, int, int], float]] = {
    "independent": lambda h, r, s: 0.5 * (0.6, 0.4)[r] * (0.7, 0.3)[s],
    "chain": lambda h, r, s: 0.5 * either(0.75 if h else 0.3, r) * either(0.7 if r else 0.2, s),
    "fork": lambda h, r, s: either(0.45, r) * either(0.8 if r else 0.35, h) * either(0.3 if r else 0.75, s),
    "collider": lambda h, r, s: (
        0.5 * either(0.4, r) * either({(1, 1): 0.85, (1, 0): 0.4, (0, 1): 0.5, (0, 0): 0.15}[h, r], s)
    ),
    "edge": lambda h, r, s: either(0.6, h) * either(0.7 if h else 0.25, r) * either(0.35, s),
}


def test_data_keep_the_contract() -> None:
    data = circles(n_samples=50, seed=3)
    image = data.modalities["image"]
    assert (data.name, data.n_samples, dict(data.kinds)) == ("circles", 50, {"image": "image"})
    assert image.shape == (50, 28, 28, 3)
    assert image.dtype == np.float32
    assert (image.min(), image.max()) == (0.0, 1.0)
    assert data.present["image"].all()
    assert list(data.factors) == list(data.factor_levels) == list(data.measurements) == ["hue", "radius", "shift"]
    assert all(codes.dtype.kind == "i" and set(codes) == {0, 1} for codes in data.factors.values())


def test_the_default_is_the_size_of_the_paper() -> None:
    assert circles().n_samples == 4096


def test_the_seed_alone_decides() -> None:
    first, again, other = circles(64, seed=5), circles(64, seed=5), circles(64, seed=6)
    np.testing.assert_array_equal(first.modalities["image"], again.modalities["image"])
    assert not np.array_equal(first.modalities["image"], other.modalities["image"])


def test_first_samples_do_not_depend_on_their_number() -> None:
    few, many = circles(20, seed=1), circles(90, seed=1)
    np.testing.assert_array_equal(few.modalities["image"], many.modalities["image"][:20])


def test_spread_scales_the_same_noise() -> None:
    wide, narrow = circles(200, seed=2), circles(200, seed=2, spread="standard_deviation")
    np.testing.assert_array_equal(wide.factors["shift"], narrow.factors["shift"])
    mean = -6.0 + 6 * wide.factors["radius"] + 3 * wide.factors["shift"]
    ratio = (wide.measurements["shift"] - mean) / (narrow.measurements["shift"] - mean)
    np.testing.assert_allclose(ratio, np.sqrt(0.5) / 0.5)


@pytest.mark.parametrize(("spread", "scales"), [("variance", (0.5, 0.5**0.5)), ("standard_deviation", (0.25, 0.5))])
def test_every_branch_has_the_means_and_spreads_of_the_tree(spread: Spread, scales: tuple[float, float]) -> None:
    data = circles(seed=4, spread=spread)
    h, r, s = data.factors.values()
    radius, shift = data.measurements["radius"], data.measurements["shift"]
    for branch, mean in {(0, 0): 4, (0, 1): 5, (1, 0): 6, (1, 1): 7}.items():
        assert_normal(radius[(h == branch[0]) & (r == branch[1])], mean, scales[0])
    for branch, mean in {(0, 0): -6, (0, 1): -3, (1, 0): 0, (1, 1): 3}.items():
        assert_normal(shift[(r == branch[0]) & (s == branch[1])], mean, scales[1])


def assert_normal(values: np.ndarray, mean: float, scale: float) -> None:
    """Mean and sum of squares lie where all but about 1 in 10,000 samples of that normal have them."""
    n = len(values)
    assert abs(values.mean() - mean) < 4 * scale / np.sqrt(n)
    assert chi2.ppf(5e-5, n) < (((values - mean) / scale) ** 2).sum() < chi2.ppf(1 - 5e-5, n)


def test_radius_and_shift_noise_are_independent() -> None:
    data = circles(seed=8)
    h, r, s = data.factors.values()
    radius_noise = data.measurements["radius"] - (4 + 2 * h + r)
    shift_noise = data.measurements["shift"] - (-6 + 6 * r + 3 * s)
    assert abs(np.corrcoef(radius_noise, shift_noise)[0, 1]) < 4 / np.sqrt(4096)


@pytest.mark.parametrize("truth", TRUTHS)
def test_joint_is_the_product_of_its_conditionals(truth: Truth) -> None:
    expected = np.array([WRITTEN_OUT[truth](*cell) for cell in product((0, 1), repeat=3)])
    np.testing.assert_allclose(true_joint(truth).ravel(), expected, rtol=1e-12)
    assert true_joint(truth).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("truth", TRUTHS)
def test_cells_are_as_frequent_as_the_joint_says(truth: Truth) -> None:
    data = circles(seed=11, truth=truth)
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, tuple(data.factors.values()), 1)
    expected = 4096 * true_joint(truth)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-4, df=7)
    assert data.name == ("circles" if truth == "independent" else f"circles_{truth}")


@pytest.mark.parametrize(
    ("truth", "edges"),
    [
        ("independent", []),  #    h    r    s
        ("chain", [(0, 1), (1, 2)]),  #    h -> r -> s
        ("fork", [(1, 0), (1, 2)]),  #    h <- r -> s
        ("collider", [(0, 2), (1, 2)]),  #    h -> s <- r
        ("edge", [(0, 1)]),  #    h -> r    s
    ],
)
def test_adjacency_is_read_from_cause_to_effect(truth: Truth, edges: list[tuple[int, int]]) -> None:
    expected = np.zeros((3, 3), dtype=int)
    for cause, effect in edges:
        expected[cause, effect] = 1
    np.testing.assert_array_equal(true_adjacency(truth), expected)


@pytest.mark.parametrize("truth", TRUTHS)
def test_two_rare_cells_have_three_percent(truth: Truth) -> None:
    rare = true_joint(truth, rare=True)
    assert (np.isclose(rare, 0.03).sum(), (rare > 0.03 + 1e-9).sum()) == (2, 6)
    data = circles(seed=12, truth=truth, rare=True)
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, tuple(data.factors.values()), 1)
    assert ((counts - 4096 * rare) ** 2 / (4096 * rare)).sum() < chi2.ppf(1 - 1e-4, df=7)
    assert data.name == f"circles{'' if truth == 'independent' else f'_{truth}'}_rare"
    np.testing.assert_array_equal(data.true_joint, rare)
    np.testing.assert_array_equal(data.true_adjacency, true_adjacency(truth))


def conditional_information(joint: np.ndarray, a: int, b: int, given: bool) -> float:
    """I(a; b) or I(a; b | the third factor), in nats."""
    third = 3 - a - b
    joint = np.moveaxis(joint, (a, b, third), (0, 1, 2))
    joint = joint if given else joint.sum(2, keepdims=True)
    ratio = joint * joint.sum((0, 1), keepdims=True) / (joint.sum(0, keepdims=True) * joint.sum(1, keepdims=True))
    return float((joint * np.log(ratio)).sum())


@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize(
    ("truth", "independences"),
    [
        ("independent", {(a, b, given) for a, b in [(0, 1), (0, 2), (1, 2)] for given in (False, True)}),
        ("chain", {(0, 2, True)}),
        ("fork", {(0, 2, True)}),
        ("collider", {(0, 1, False)}),
        ("edge", {(0, 2, False), (0, 2, True), (1, 2, False), (1, 2, True)}),
    ],
)
def test_exactly_the_independences_of_the_dag_hold(
    truth: Truth, independences: set[tuple[int, int, bool]], rare: bool
) -> None:
    found = {
        (a, b, given)
        for (a, b), given in product([(0, 1), (0, 2), (1, 2)], (False, True))
        if conditional_information(true_joint(truth, rare), a, b, given) < 1e-4
    }
    assert found == independences


def covered_area(radius: float, shift: float, fine: int = 20) -> np.ndarray:
    """Coverage of every pixel by counting sub-pixels inside the disc."""
    points = (np.arange(28 * fine) + 0.5) / fine
    inside = (points[:, None] - 14) ** 2 + (points[None, :] - 14 - shift) ** 2 < radius**2
    return inside.reshape(28, fine, 28, fine).mean(axis=(1, 3))


@pytest.mark.parametrize(("radius", "shift"), [(3.1, -6.4), (4.6, 0.0), (5.5, 2.7), (8.2, 3.9), (7.0, -9.3)])
def test_pixels_are_covered_areas(radius: float, shift: float) -> None:
    image = render_discs(np.array([0]), np.array([radius]), np.array([shift]))[0, ..., 0]
    area = covered_area(radius, shift)
    assert np.abs(image - area).max() < 0.06
    assert image.sum() == pytest.approx(area.sum(), rel=0.015)
    assert np.abs((area > 0.5) - area).max() > 0.4  # what drawing without anti-aliasing would get wrong


def test_discs_are_centred_vertically_and_shifted_right() -> None:
    shift = np.array([-4.3, 0.0, 2.6])
    image = render_discs(np.array([0, 0, 0]), np.array([4.0, 5.0, 6.0]), shift)[..., 0]
    centres = np.arange(28) + 0.5
    np.testing.assert_allclose((image.sum(1) @ centres) / image.sum((1, 2)) - 14, shift, atol=0.02)
    np.testing.assert_allclose(image, image[:, ::-1], atol=1e-6)


def test_hue_is_a_colour_on_black() -> None:
    red, blue = render_discs(np.array([0, 1]), np.array([5.0, 5.0]), np.array([1.0, 1.0]))
    np.testing.assert_array_equal(red[14, 14], [1, 0, 0])
    np.testing.assert_array_equal(blue[14, 14], [0, 0, 1])
    np.testing.assert_array_equal(red[0, 0], [0, 0, 0])
    np.testing.assert_array_equal(red[..., ::-1], blue)


def population_ceiling(truth: Truth, radius_scale: float, shift_scale: float) -> float:
    """Sum over hue of the integral of the largest joint density of the four cells, on a grid."""
    radius, shift = np.arange(0.5, 10.5, 0.02), np.arange(-10.5, 7.5, 0.02)
    total = 0.0
    for h in (0, 1):
        densities = [
            WRITTEN_OUT[truth](h, r, s)
            * norm.pdf(radius, 4 + 2 * h + r, radius_scale)[:, None]
            * norm.pdf(shift, -6 + 6 * r + 3 * s, shift_scale)[None]
            for r, s in product((0, 1), repeat=2)
        ]
        total += np.max(densities, axis=0).sum() * 0.02**2
    return total


@pytest.mark.parametrize("truth", TRUTHS)
def test_ceiling_scatters_around_the_population_value(truth: Truth) -> None:
    expected = population_ceiling(truth, 0.5, 0.5**0.5)
    realised = np.mean([ceiling for seed in range(3) if (ceiling := circles(seed=seed, truth=truth).bayes_ceiling)])
    assert abs(realised - expected) < 4 * np.sqrt(expected * (1 - expected) / (3 * 4096))
    assert 0.979 < expected < 0.987


def test_ceilings_of_the_two_readings_of_the_paper() -> None:
    assert population_ceiling("independent", 0.5, 0.5**0.5) == pytest.approx(0.980, abs=0.001)
    narrow = population_ceiling("independent", 0.25, 0.5)
    assert narrow == pytest.approx(0.999, abs=0.0005)
    realised = circles(spread="standard_deviation").bayes_ceiling
    assert realised is not None
    assert abs(realised - narrow) < 4 * np.sqrt(narrow * (1 - narrow) / 4096)


def test_ceiling_equals_bayes_rule_sample_by_sample() -> None:
    data = circles(1000, seed=9, truth="collider")
    h, r, s = data.factors.values()
    densities = [
        np.array([WRITTEN_OUT["collider"](hue, b, c) for hue in h])
        * norm.pdf(data.measurements["radius"], 4 + 2 * h + b, 0.5)
        * norm.pdf(data.measurements["shift"], -6 + 6 * b + 3 * c, 0.5**0.5)
        for b, c in product((0, 1), repeat=2)
    ]
    hits = np.argmax(densities, axis=0) == 2 * r + s
    assert data.bayes_ceiling == hits.mean() < 1


def test_no_other_truth_or_spread_classifies_better_on_many_samples() -> None:
    draws = [circles(seed=seed, truth="chain") for seed in range(3)]

    def mean_ceiling(truth: Truth, spread: Spread = "variance") -> float:
        return float(
            np.mean(
                [
                    bayes_ceiling(
                        d.factors, d.measurements["radius"], d.measurements["shift"], spread, true_joint(truth)
                    )
                    for d in draws
                ]
            )
        )

    assert mean_ceiling(truth="chain") > mean_ceiling(truth="fork") + 0.001
    assert mean_ceiling(truth="chain") > mean_ceiling(truth="chain", spread="standard_deviation")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: expected at least 1, got 0"),
        ({"seed": -1}, "seed: expected a non-negative integer, got -1"),
        ({"spread": "sigma"}, "spread: expected one of variance, standard_deviation, got 'sigma'"),
        ({"truth": "tree"}, "truth: expected one of independent, chain, fork, collider, edge, got 'tree'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        circles(**arguments)  # type: ignore[arg-type]
