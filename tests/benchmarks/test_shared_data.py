"""The reference data of the benchmarks: shapes, counts, and the planted edge between real modalities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2
from shared_data import MFEAT_VIEWS, mfeat, nutrimouse, speaker_table, spoken_digits

from causalpima.inference.data.validation import validate


@pytest.fixture
def folder(shared: Path) -> Path:
    return shared / "data"


def test_mfeat_has_six_views_of_two_hundred_digits_each(folder: Path) -> None:
    data = mfeat(folder=folder)
    validate(data)
    sizes = {view: values.shape for view, values in data.modalities.items()}
    assert sizes == {
        "pix": (2000, 240),
        "fou": (2000, 76),
        "fac": (2000, 216),
        "zer": (2000, 47),
        "kar": (2000, 64),
        "mor": (2000, 6),
    }
    assert tuple(sizes) == MFEAT_VIEWS
    np.testing.assert_array_equal(np.bincount(data.factors["digit"]), [200] * 10)
    for values in data.modalities.values():
        np.testing.assert_allclose(values.mean(axis=0, dtype=float), 0.0, atol=1e-5)
        np.testing.assert_allclose(values.std(axis=0, dtype=float), 1.0, rtol=1e-5)


def test_mfeat_features_separate_the_digits(folder: Path) -> None:
    # The number of holes (first of `mor`) is 2 for an eight, 1 for a zero, 0 for a one, almost always.
    data = mfeat(("mor", "pix"), folder)
    assert list(data.modalities) == ["mor", "pix"]
    holes = [np.median(data.modalities["mor"][data.factors["digit"] == digit, 0]) for digit in (1, 0, 8)]
    assert holes[0] < holes[1] < holes[2]


@pytest.mark.parametrize("views", [(), ("pix", "sound")])
def test_unknown_views_are_refused(views: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="views: expected some of pix, fou, fac, zer, kar, mor, got"):
        mfeat(views)


def test_nutrimouse_is_crossed(folder: Path) -> None:
    data = nutrimouse(folder)
    validate(data)
    assert {name: values.shape for name, values in data.modalities.items()} == {"gene": (40, 120), "lipid": (40, 21)}
    counts = np.zeros((2, 5))
    np.add.at(counts, (data.factors["genotype"], data.factors["diet"]), 1)
    assert (counts == 4).all()
    # The lipids tell the diets apart: linseed oil raises C18:3n-3.
    linseed = data.factors["diet"] == data.factor_levels["diet"].index("lin")
    acid = data.modalities["lipid"][:, 16]
    assert acid[linseed].mean() > acid[~linseed].mean() + 1


def test_planted_table_by_hand() -> None:
    np.testing.assert_allclose(speaker_table(3, 2, 0.6), [[0.8, 0.2], [0.2, 0.8], [0.8, 0.2]])
    np.testing.assert_allclose(speaker_table(4, 3, 0.0), 1 / 3)
    np.testing.assert_allclose(speaker_table(10, 6, 0.35).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"strength: expected 0 to 1, got 1\.5"):
        speaker_table(3, 2, 1.5)


@pytest.mark.parametrize("strength", [0.0, 0.6])
def test_speakers_are_as_frequent_as_planted(folder: Path, strength: float) -> None:
    data = spoken_digits(3000, seed=1, strength=strength, folder=folder)
    counts = np.zeros((10, 6))
    np.add.at(counts, (data.factors["digit"], data.factors["speaker"]), 1)
    expected = counts.sum(axis=1, keepdims=True) * speaker_table(10, 6, strength)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-4, df=50)


def test_spoken_digits_belong_together(folder: Path) -> None:
    digits, speakers = (7, 1, 4), ("theo", "george")
    data = spoken_digits(300, seed=2, digits=digits, speakers=speakers, folder=folder)
    validate(data)
    shapes = {name: values.shape for name, values in data.modalities.items()}
    assert shapes == {"bitmap": (300, 28, 28, 1), "force": (300, 11), "speech": (300, 32, 32, 1)}
    assert data.factor_levels == {"digit": ("7", "1", "4"), "speaker": speakers}
    with np.load(folder / "fsdd" / "fsdd_logspec32.npz") as recordings:
        spec, said, by = (recordings[name] for name in ("spec", "digit", "speaker"))
    assert data.groups is not None
    np.testing.assert_array_equal(said[data.groups], np.array(digits)[data.factors["digit"]])
    np.testing.assert_array_equal(by[data.groups], np.array(speakers)[data.factors["speaker"]])
    np.testing.assert_allclose(data.modalities["speech"][:, ..., 0] * 255, spec[data.groups], atol=1e-3)


def test_force_is_the_response_to_the_ink_of_the_same_bitmap_and_digit(folder: Path) -> None:
    data = spoken_digits(400, seed=3, folder=folder)
    ink = data.modalities["bitmap"].sum(axis=(1, 2, 3))
    assert np.corrcoef(ink, data.modalities["force"][:, -1])[0, 1] > 0.6
    one, zero = (ink[data.factors["digit"] == digit].mean() for digit in (1, 0))
    assert one < 0.6 * zero
    axis = data.axes["force"].values
    np.testing.assert_allclose(axis[[0, 1, -1]], [0.0055, 0.055, 13.0])


def test_the_seed_alone_decides(folder: Path) -> None:
    first, again, other = (spoken_digits(50, seed, folder=folder) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.modalities["speech"], again.modalities["speech"])
    assert not np.array_equal(first.modalities["bitmap"], other.modalities["bitmap"])


def test_too_many_samples_and_unknown_speakers_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"n_samples: expected 1 to .*, the bitmaps of these digits, got 5000"):
        spoken_digits(5000, digits=(1, 7), folder=folder)
    with pytest.raises(ValueError, match=r"speakers: expected some of george, .*, got 'nobody'"):
        spoken_digits(50, speakers=("george", "nobody"), folder=folder)
