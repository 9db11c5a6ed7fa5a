"""Reference data beside the repository (`../shared/data`), as the benchmarks and some tests take them.

Nothing of it is shipped; sources, licences and pitfalls stand in the README of each folder.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from causalpima.inference.data.multimodal import Axis, MultimodalData

__all__ = ["MFEAT_VIEWS", "SHARED_DATA", "SPEAKERS", "mfeat", "nutrimouse", "speaker_table", "spoken_digits"]

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

MFEAT_VIEWS = ("pix", "fou", "fac", "zer", "kar", "mor")
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")

_DISPLACEMENTS = np.array([0, 0.001, 0.01, 0.1, 0.5, 1, 2, 4, 6, 8, 10, 12, 14])
_DIGITS = tuple(map(str, range(10)))
_DIETS = ("coc", "fish", "lin", "ref", "sun")


def mfeat(views: Sequence[str] = MFEAT_VIEWS, folder: Path = SHARED_DATA) -> MultimodalData:
    """2000 handwritten digits in up to six feature views, each feature standardised over all digits.

    Features of one view differ in scale by up to 10⁴, so that one scale for the view would leave only the largest.

    Args:
        views: Views to read, of `MFEAT_VIEWS`.
        folder: Folder that holds `mfeat`.

    Returns:
        One vector modality per view; the factor digit.

    Raises:
        ValueError: If a view is unknown, or there is none.
    """
    if not views or not set(views) <= set(MFEAT_VIEWS):
        raise ValueError(f"views: expected some of {', '.join(MFEAT_VIEWS)}, got {list(views)}; choose from these")
    tables = {view: _table(folder / "mfeat" / f"mfeat-{view}.csv") for view in views}
    digit = next(iter(tables.values()))[:, -1].astype(int)
    modalities = {view: _standardised(table[:, :-1]) for view, table in tables.items()}
    return _vectors("mfeat", modalities, {"digit": digit}, {"digit": _DIGITS})


def nutrimouse(folder: Path = SHARED_DATA) -> MultimodalData:
    """40 mice: expression of 120 genes and 21 fatty acids of the liver, each standardised over all mice.

    Genotype and diet were crossed by design, four mice each: a learned edge between them is a false positive.

    Args:
        folder: Folder that holds `nutrimouse`.

    Returns:
        Vector modalities gene and lipid; factors genotype and diet.
    """
    folder = folder / "nutrimouse"
    modalities = {name: _standardised(_table(folder / f"{name}.csv")) for name in ("gene", "lipid")}
    levels = {"genotype": ("wt", "ppar"), "diet": _DIETS}
    words = {name: (folder / f"{name}.csv").read_text(encoding="utf-8").split()[1:] for name in levels}
    factors = {name: np.array([levels[name].index(word.strip('"')) for word in words[name]]) for name in levels}
    return _vectors("nutrimouse", modalities, factors, levels)


def speaker_table(n_digits: int, n_speakers: int, strength: float) -> np.ndarray:
    """p(speaker | digit), `[digit, speaker]`: digit g prefers speaker g mod S by `strength`, all else is uniform.

    Args:
        n_digits: Number of digits.
        n_speakers: Number S of speakers.
        strength: 0 (digit and speaker are independent) to 1 (the digit determines the speaker).

    Raises:
        ValueError: If `strength` is out of range.
    """
    if not 0.0 <= strength <= 1.0:
        raise ValueError(f"strength: expected 0 to 1, got {strength}; 0 plants no edge")
    preferred = np.arange(n_digits)[:, None] % n_speakers == np.arange(n_speakers)
    return strength * preferred + (1.0 - strength) / n_speakers


def spoken_digits(
    n_samples: int = 2000,
    seed: int = 0,
    strength: float = 0.6,
    digits: Sequence[int] = range(10),
    speakers: Sequence[str] = SPEAKERS,
    folder: Path = SHARED_DATA,
) -> MultimodalData:
    """Real modalities with a planted edge digit → speaker: a bitmap, its mechanical response, and a recording.

    Bitmaps are drawn without replacement; each gets a speaker from `speaker_table` and one of this speaker's
    recordings of the same digit, drawn with replacement. The digit causes all three modalities, the speaker the
    recording alone. Only bitmap and response belong together in the world; with the recording they share the digit.

    Args:
        n_samples: Number of samples, at most the number of bitmaps of these digits.
        seed: Seed of the drawing.
        strength: Of the planted edge; 0 is the negative control.
        digits: Digits that take part.
        speakers: Speakers that take part, of `SPEAKERS`.
        folder: Folder that holds `mech_mnist` and `fsdd`.

    Returns:
        Modalities `bitmap` `[28, 28, 1]` and `speech` `[32, 32, 1]` in [0, 1], and `force`, the slope of the strain
        energy over the displacement, `[11]`; factors digit and speaker, coded by their place in `digits` and
        `speakers`; samples with one recording are one group.

    Raises:
        ValueError: If there are not so many bitmaps, or an argument is out of range.
    """
    table = speaker_table(len(digits), len(speakers), strength)
    bitmaps, energy, labels = _mech_mnist(folder / "mech_mnist")
    pick, voice, take = np.random.default_rng(seed).spawn(3)
    candidates = np.flatnonzero(np.isin(labels, list(digits)))
    if not 1 <= n_samples <= len(candidates):
        raise ValueError(f"n_samples: expected 1 to {len(candidates)}, the bitmaps of these digits, got {n_samples}")
    rows = pick.permutation(candidates)[:n_samples]
    digit = np.array([list(digits).index(label) for label in labels[rows]])
    speaker = (voice.random((n_samples, 1)) > np.cumsum(table, axis=1)[digit, :-1]).sum(axis=1)
    with np.load(folder / "fsdd" / "fsdd_logspec32.npz") as recordings:
        recorded = {name: recordings[name] for name in ("spec", "digit", "speaker")}
    recording = _recordings(recorded, np.array(digits)[digit], np.array(speakers)[speaker], take)
    force = np.diff(energy[rows], axis=1) / np.diff(_DISPLACEMENTS)
    return MultimodalData(
        name="spoken_digits",
        modalities={
            "bitmap": bitmaps[rows, :, :, None] / np.float32(255),
            # The energy of the first step is rounded to zero in the file.
            "force": force[:, 1:].astype(np.float32),
            "speech": recorded["spec"][recording, :, :, None] / np.float32(255),
        },
        present={name: np.ones(n_samples, dtype=bool) for name in ("bitmap", "force", "speech")},
        kinds={"bitmap": "image", "force": "curve", "speech": "image"},
        factors={"digit": digit, "speaker": speaker},
        factor_levels={"digit": tuple(map(str, digits)), "speaker": tuple(speakers)},
        axes={"force": Axis("displacement", (_DISPLACEMENTS[1:-1] + _DISPLACEMENTS[2:]) / 2)},
        groups=recording,
    )


def _table(path: Path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", skiprows=1)


def _standardised(features: np.ndarray) -> np.ndarray:
    return ((features - features.mean(axis=0)) / features.std(axis=0)).astype(np.float32)


def _vectors(
    name: str,
    modalities: dict[str, np.ndarray],
    factors: dict[str, np.ndarray],
    levels: dict[str, tuple[str, ...]],
) -> MultimodalData:
    return MultimodalData(
        name=name,
        modalities=modalities,
        present={modality: np.ones(len(values), dtype=bool) for modality, values in modalities.items()},
        kinds=dict.fromkeys(modalities, "vector"),
        factors=factors,
        factor_levels=levels,
    )


def _mech_mnist(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bitmaps `[10000, 28, 28]`, strain energies `[10000, displacement]` and digits `[10000]`."""
    with zipfile.ZipFile(folder / "mnist_img_test.txt.zip") as archive:
        bitmaps = np.loadtxt(io.BytesIO(archive.read("mnist_img_test.txt")), dtype=np.uint8)
    labels = np.frombuffer(gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:], dtype=np.uint8)
    return bitmaps.reshape(-1, 28, 28), np.loadtxt(folder / "summary_psi_test_all.txt"), labels


def _recordings(
    recorded: dict[str, np.ndarray], digit: np.ndarray, speaker: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Row of a recording of that digit by that speaker for every sample, `[sample]`."""
    chosen = np.empty(len(digit), dtype=int)
    uniform = generator.random(len(digit))
    for label, voice in set(zip(digit.tolist(), speaker.tolist(), strict=True)):
        rows = np.flatnonzero((recorded["digit"] == label) & (recorded["speaker"] == voice))
        if not len(rows):
            raise ValueError(f"speakers: expected some of {', '.join(SPEAKERS)}, got {voice!r}; choose from these")
        here = (digit == label) & (speaker == voice)
        chosen[here] = rows[(uniform[here] * len(rows)).astype(int)]
    return chosen
