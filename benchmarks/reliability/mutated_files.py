"""Damaged and odd files, read by the commands that take them: each is read sanely, or refused in one line.

    python benchmarks/reliability/mutated_files.py --json mutated.json
    python benchmarks/reliability/mutated_files.py --only npz --cases 20

Files of samples (netCDF-4, classic netCDF, zarr, npz), tables (of categories, labels, names, a manifest) and YAML
(settings, arms), made by this script and damaged with seeded faults: bytes (cut off, flipped, zeroed, doubled), text
(encodings, line ends, ragged rows, names twice, numbers where words belong) and content (types, dimensions, NaN,
infinity, no sample, one sample, sizes of terabytes, pickles). Each is read by `main` of its command in a forked child
with a limit on memory and 60 s. Held: exit status 0 or 3 with something printed and no Python warning, or status 2
with one line that names the file; no traceback, and no file that was not there before, unless it was asked for.
"""

from __future__ import annotations

import itertools
import os
import pickle
import resource
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr
from campaign import ROOT, Case, Outcome, campaign_parser, forked, report

sys.path.insert(0, str(ROOT))

N = 24
SECONDS = 60.0
MORE_MEMORY = 3 * 2**30
LARGE = 2**40

Random = np.random.Generator
Damage = Callable[[bytes, Random], bytes]


# ------------------------------------------------------------------------------------------------ what is damaged


def samples() -> xr.Dataset:
    """A curve with gaps, an image, a number, a label, a covariate, a group, and names."""
    random = np.random.default_rng(0)
    phase = np.arange(N) % 2
    strain = np.linspace(0, 1, 8)
    stress = (1 + phase[:, None]) * strain + 0.05 * random.normal(size=(N, 8))
    stress[3, 5:] = np.nan
    picture = random.normal(size=(N, 4, 4)) + phase[:, None, None]
    return xr.Dataset(
        {
            "stress": (("sample", "strain"), stress, {"units": "MPa"}),
            "picture": (("sample", "y", "x"), picture.astype("f4")),
            "hardness": ("sample", phase + 0.1 * random.normal(size=N)),
            "phase": ("sample", np.where(phase, "b", "a"), {"role": "label"}),
            "batch": ("sample", (np.arange(N) // 6).astype("i4"), {"role": "covariate"}),
            "specimen": ("sample", (np.arange(N) // 2).astype("i4"), {"role": "group"}),
        },
        coords={"strain": ("strain", strain, {"units": "%"}), "sample": [f"S{i:02d}" for i in range(N)]},
    )


def categories() -> str:
    """rain and sprinkler, wet, slip."""
    random = np.random.default_rng(1)
    rain, sprinkler = random.random((2, 120)) < 0.4
    wet = (rain | sprinkler) ^ (random.random(120) < 0.1)
    rows = zip(*(np.where(column, "yes", "no") for column in (rain, sprinkler, wet)), strict=True)
    return "rain,sprinkler,wet\n" + "".join(",".join(row) + "\n" for row in rows)


def labels() -> str:
    """A label per sample."""
    return "sample,phase\n" + "".join(f"S{i:02d},{'ab'[i % 2]}\n" for i in range(N))


def manifest() -> str:
    """Two numbers and a label per sample."""
    random = np.random.default_rng(2)
    rows = [f"S{i:02d},{random.normal():.3f},{random.normal(5):.2f},{'ab'[i % 2]}" for i in range(N)]
    return "sample,mass (g),stiffness (MPa),alloy\n" + "\n".join(rows) + "\n"


ARMS = "plain: {}\nsmall:\n  model.latent_dim: 2\n  training.learning_rate: 0.001\nwide: {model.latent_dim: 4}\n"
GRAPH = "N1 -> N2\n# a remark\nN2 -> N3\n"


# -------------------------------------------------------------------------------------------------- how it is damaged


def _place(content: bytes, random: Random) -> int:
    return int(random.integers(0, max(len(content), 1)))


def _cut(content: bytes, random: Random) -> bytes:
    return content[: _place(content, random)]


def _flipped(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    for place in random.integers(0, len(content), int(random.integers(1, 40))):
        changed[place] ^= 1 << int(random.integers(0, 8))
    return bytes(changed)


def _flipped_head(content: bytes, random: Random) -> bytes:
    return _flipped(content[:512], random) + content[512:]


def _zeroed(content: bytes, random: Random) -> bytes:
    start = _place(content, random)
    size = min(int(random.integers(1, 200)), len(content) - start)
    return content[:start] + bytes(size) + content[start + size :]


def _doubled(content: bytes, random: Random) -> bytes:
    start, size = _place(content, random), int(random.integers(1, 300))
    return content[: start + size] + content[start:]


def _noise(content: bytes, random: Random) -> bytes:
    start = _place(content, random)
    return content[:start] + random.bytes(int(random.integers(1, 64))) + content[start:]


BYTES: Mapping[str, Damage] = {
    "cut off": _cut,
    "bits flipped": _flipped,
    "head flipped": _flipped_head,
    "zeros": _zeroed,
    "a block twice": _doubled,
    "noise between": _noise,
    "empty": lambda content, random: b"",
    "text": lambda content, random: b"this is no such file\n" * 9,
    "noise alone": lambda content, random: random.bytes(400),
}


def _line(change: Callable[[list[str], Random], list[str]]) -> Damage:
    def damage(content: bytes, random: Random) -> bytes:
        return ("\n".join(change(content.decode().splitlines(), random)) + "\n").encode()

    return damage


def _entry(text: str) -> Damage:
    """One entry of one row replaced."""

    def change(lines: list[str], random: Random) -> list[str]:
        row = int(random.integers(1, len(lines)))
        fields = lines[row].split(",")
        fields[int(random.integers(0, len(fields)))] = text
        return [*lines[:row], ",".join(fields), *lines[row + 1 :]]

    return _line(change)


def _column(text: Callable[[int], str]) -> Damage:
    """The last column replaced."""

    def change(lines: list[str], random: Random) -> list[str]:
        return [lines[0], *(f"{line.rpartition(',')[0]},{text(row)}" for row, line in enumerate(lines[1:]))]

    return _line(change)


TEXTS: Mapping[str, Damage] = {
    **{name: BYTES[name] for name in ("cut off", "bits flipped", "zeros", "a block twice", "noise between", "empty")},
    "BOM": lambda content, random: b"\xef\xbb\xbf" + content,
    "UTF-16": lambda content, random: content.decode().encode("utf-16"),
    "CRLF": lambda content, random: content.replace(b"\n", b"\r\n"),
    "CR": lambda content, random: content.replace(b"\n", b"\r"),
    "Latin-1": lambda content, random: content.replace(b"a", "ä".encode("latin-1")),
    "NUL": lambda content, random: content[:20] + b"\0" + content[20:],
    "blank lines": lambda content, random: content.replace(b"\n", b"\n\n \n"),
    "one line": lambda content, random: content.partition(b"\n")[0],
    "header twice": lambda content, random: content.partition(b"\n")[0] + b"\n" + content,
    "no last line end": lambda content, random: content.rstrip(b"\n"),
    "a long line": lambda content, random: content + b"x" * 10**6 + b"\n",
    "semicolons": lambda content, random: content.replace(b",", b";"),
    "a separator more": _line(lambda lines, random: [*lines[:3], lines[3] + ",9", *lines[4:]]),
    "a separator less": _line(lambda lines, random: [*lines[:3], lines[3].partition(",")[0], *lines[4:]]),
    "a quote": _line(lambda lines, random: [*lines[:3], '"' + lines[3], *lines[4:]]),
    "names twice": _line(lambda lines, random: [",".join(["rain"] * (lines[0].count(",") + 1)), *lines[1:]]),
    "a name empty": _line(lambda lines, random: ["," + lines[0].partition(",")[2], *lines[1:]]),
    "rows twice": _line(lambda lines, random: [*lines, *lines[1:]]),
    "first column gone": _line(lambda lines, random: [line.partition(",")[2] for line in lines]),
    "an entry empty": _entry(""),
    "an entry NaN": _entry("NaN"),
    "an entry inf": _entry("inf"),
    "an entry -999": _entry("-999"),
    "an entry of words": _entry("see page 3"),
    "an entry of 1e400": _entry("1e400"),
    "an entry of a formula": _entry('=cmd|"/c calc"!A1'),
    "an entry with a control character": _entry("a\x1b[31mb"),
    "numbers": _column(lambda row: f"{row / 7:.4f}"),
    "names of rows": _column("R{}".format),
    "one level": _column(lambda row: "same"),
    "nothing": _column(lambda row: ""),
    "missing marks": _column(lambda row: "NA" if row % 3 else "yes"),
    "dashes": _column(lambda row: "-" if row % 3 else "yes"),
}

_JUNK = (
    "abc",
    "-1",
    "0",
    "1e309",
    "nan",
    "null",
    "[]",
    "{}",
    "[1, [2]]",
    "{a: {b: c}}",
    "'x'",
    "!!python/object:os.x {}",
)


def _scalar(content: bytes, random: Random) -> bytes:
    """The value of one line replaced by one that does not belong there."""
    lines = content.decode().splitlines()
    with_value = [row for row, line in enumerate(lines) if ": " in line] or [0]
    row = with_value[int(random.integers(0, len(with_value)))]
    lines[row] = f"{lines[row].partition(': ')[0]}: {_JUNK[int(random.integers(0, len(_JUNK)))]}"
    return ("\n".join(lines) + "\n").encode()


def _key(content: bytes, random: Random) -> bytes:
    """The key of one line misspelt."""
    lines = content.decode().splitlines()
    row = int(random.integers(0, len(lines)))
    lines[row] = lines[row].replace(":", "x:", 1)
    return ("\n".join(lines) + "\n").encode()


YAML: Mapping[str, Damage] = {
    **{name: TEXTS[name] for name in ("cut off", "bits flipped", "zeros", "noise between", "empty", "BOM", "UTF-16")},
    **{name: TEXTS[name] for name in ("CRLF", "Latin-1", "NUL", "a long line")},
    **{f"a value of another kind {k}": _scalar for k in range(12)},
    **{f"a key misspelt {k}": _key for k in range(4)},
    "a block twice": BYTES["a block twice"],
    "keys twice": lambda content, random: content + content,
    "a list": lambda content, random: b"- a\n- b\n",
    "a number": lambda content, random: b"3\n",
    "tabs": lambda content, random: content.replace(b"  ", b"\t"),
    "deep": lambda content, random: b"a: " + b"[" * 5000 + b"]" * 5000,
    "aliases": lambda content, random: b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "code": lambda content, random: b"!!python/object/apply:os.system ['touch executed']\n",
    "two documents": lambda content, random: content + b"---\n" + content,
}


# ------------------------------------------------------------------------------------------------- content of samples


class Executes:
    """Leaves a file behind where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("executed"),)


def _with(
    name: str, values: Any, dims: Sequence[str] | None = None, **attributes: Any
) -> Callable[[xr.Dataset], xr.Dataset]:
    """A variable replaced or added."""

    def change(data: xr.Dataset) -> xr.Dataset:
        found = (
            values(data[name].to_numpy() if name in data else np.zeros(N)) if callable(values) else np.asarray(values)
        )
        over = list(dims) if dims is not None else list(data[name].dims) if name in data else ["sample"]
        about = {**(data[name].attrs if name in data else {}), **attributes}
        return data.drop_vars(name, errors="ignore").assign({name: (over, found, about)})

    return change


def _first(value: float, name: str = "stress") -> Callable[[xr.Dataset], xr.Dataset]:
    return _with(name, lambda values: np.where(np.arange(values.size).reshape(values.shape) == 0, value, values))


CONTENT: Mapping[str, Callable[[xr.Dataset], xr.Dataset]] = {
    "as it is": lambda data: data,
    "no sample": lambda data: data.isel(sample=slice(0)),
    "one sample": lambda data: data.isel(sample=slice(1)),
    "two samples": lambda data: data.isel(sample=slice(2)),
    "no position": lambda data: data.isel(strain=slice(0)),
    "no variable": lambda data: data.drop_vars(list(data.data_vars)),
    "a label alone": lambda data: data[["phase"]],
    "NaN everywhere": _with("stress", lambda values: np.full_like(values, np.nan)),
    "all NaN": lambda data: data.where(False),
    "one infinite": _first(np.inf),
    "one minus infinite": _first(-np.inf, "hardness"),
    "one 1e30": _first(1e30),
    "one 1e300": _first(1e300),
    "one of 1e-320": _first(1e-320),
    "constant": _with("hardness", lambda values: np.full_like(values, 3.0)),
    "large and close": _with("hardness", lambda values: 1e12 + values),
    "-999 in a third": _with("hardness", lambda values: np.where(np.arange(N) % 3 == 0, -999.0, values)),
    "complex": _with("hardness", lambda values: values + 1j),
    "bool": _with("hardness", lambda values: values > 0.5),
    "bytes": _with("hardness", lambda values: (100 * values).astype("u1")),
    "int64": _with("hardness", lambda values: (1e15 * values).astype("i8")),
    "float16": _with("stress", lambda values: values.astype("f2")),
    "words": _with("hardness", lambda values: values.astype("U4")),
    "dates": _with("hardness", lambda values: np.datetime64("2020-01-01", "ns") + (1e9 * values).astype("m8[ns]")),
    "durations": _with("hardness", lambda values: (1e9 * values).astype("m8[ns]")),
    "five dimensions": _with("picture", lambda values: values.reshape(N, 2, 2, 2, 2), ("sample", "a", "b", "c", "d")),
    "samples last": lambda data: data.transpose(..., "sample"),
    "no sample dimension": _with("hardness", lambda values: values, ("part",)),
    "another length": _with("extra", np.zeros(7), ("other",)),
    "a scalar": _with("mass", 3.0, ()),
    "a mask of another shape": _with("stress_mask", np.ones(8), ("strain",)),
    "a mask of twos": _with("stress_mask", np.full(N, 2)),
    "a mask of nothing": _with("none_mask", np.ones(N)),
    "an infinite position": lambda data: data.assign_coords(strain=[0.0, 1, 2, 3, 4, 5, 6, np.inf]),
    "positions twice": lambda data: data.assign_coords(strain=np.zeros(8)),
    "positions of words": lambda data: data.assign_coords(strain=list("abcdefgh")),
    "names twice": lambda data: data.assign_coords(sample=["S"] * N),
    "names of numbers": lambda data: data.assign_coords(sample=np.arange(N) / 3),
    "a dot in a name": lambda data: data.rename(stress="a.b"),
    "a name of a module": lambda data: data.rename(stress="forward"),
    "a name of signs": lambda data: data.rename(stress="Größe [%] Δ"),
    "an empty label": _with("phase", np.array([""] * N)),
    "a label of samples": _with("phase", np.array([f"x{k}" for k in range(N)])),
    "a label of fractions": _with("phase", np.arange(N) / 3),
    "a covariate with gaps": _with("batch", np.where(np.arange(N) > 3, 1.0, np.nan)),
    "an unknown role": _with("hardness", lambda values: values, role="boss"),
    "a role of numbers": _with("hardness", lambda values: values, role=3),
    "an unknown kind": _with("hardness", lambda values: values, kind="sound"),
    "two environments": lambda data: _with("a", np.arange(N) % 2, role="environment")(
        _with("b", np.arange(N) % 2, role="environment")(data)
    ),
    "a gap of words": _with("hardness", lambda values: values, missing_value="-999"),
    "a range the wrong way": _with("hardness", lambda values: values, valid_range=np.array([5.0, 1.0])),
    "a range without values": _with("hardness", lambda values: values, valid_min=99.0),
    "a scale of NaN": _with("hardness", lambda values: values, scale_factor=np.nan),
    "a scale of 0": _with("hardness", lambda values: (100 * values).astype("i2"), scale_factor=0.0, valid_max=5.0),
    "odd times": _with("hardness", lambda values: values, units="fortnights since the flood"),
    "times far away": _with("hardness", lambda values: 1e15 * values, units="days since 1900-01-01"),
}


def write_netcdf(data: xr.Dataset, path: Path) -> None:
    """netCDF-4."""
    data.to_netcdf(path, engine="h5netcdf", invalid_netcdf=True)


def write_classic(data: xr.Dataset, path: Path) -> None:
    """netCDF with 64-bit offsets."""
    data.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")


def write_zarr(data: xr.Dataset, path: Path) -> None:
    """Version 2, whose metadata are text."""
    data.to_zarr(path, mode="w", zarr_format=2, consolidated=False)


def write_npz(data: xr.Dataset, path: Path) -> None:
    """Arrays without coordinates."""
    arrays: dict[str, Any] = {str(name): data[name].to_numpy() for name in data.variables if name != "strain"}
    np.savez(path, **arrays)


def _hdf5(change: Callable[[h5py.File], object]) -> Callable[[Path], object]:
    """A netCDF-4 file changed by way of HDF5."""

    def make(path: Path) -> None:
        write_netcdf(samples(), path)
        with h5py.File(path, "a") as file:
            change(file)

    return make


def _declared(file: h5py.File, shape: tuple[int, ...]) -> None:
    """A variable of this size, of which nothing is stored."""
    made = file.create_dataset("huge", shape, "f8", chunks=(N, *([1024] * (len(shape) - 1))))
    made.dims[0].attach_scale(file["sample"])
    for place, size in enumerate(shape[1:], start=1):
        scale = file.create_dataset(f"long{place}", (size,), "f4", chunks=(1024,))
        scale.make_scale()
        made.dims[place].attach_scale(scale)


def _npz(**arrays: Any) -> Callable[[Path], object]:
    return lambda path: np.savez(path, **{"stress": samples()["stress"].to_numpy(), **arrays})


def _npz_declared(path: Path) -> None:
    """An array whose head speaks of a terabyte."""
    import zipfile

    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({N}, {LARGE // N}), }}".ljust(117) + "\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "huge.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(800)
        )


def _npz_twice(path: Path) -> None:
    import zipfile

    _npz()(path)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("stress.npy", zipfile.ZipFile(path).read("stress.npy"))


def _bare(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, samples()["stress"].to_numpy())


def _pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Executes()))


def _classic_declared(path: Path) -> None:
    """The length of a dimension in the head replaced by two thousand million."""
    write_classic(samples(), path)
    path.write_bytes(path.read_bytes().replace(N.to_bytes(4, "big"), (2**31 - 8).to_bytes(4, "big"), 3))


def _zarr_metadata(find: bytes, replace: bytes) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        write_zarr(samples(), path)
        for file in path.rglob(".zarray"):
            file.write_bytes(file.read_bytes().replace(find, replace))

    return make


FILES: Mapping[str, Mapping[str, Callable[[Path], object]]] = {
    "netcdf": {
        "a size of terabytes": _hdf5(lambda file: _declared(file, (N, LARGE))),
        "an image of terabytes": _hdf5(lambda file: _declared(file, (N, 2**21, 2**21))),
        "a compound type": _hdf5(lambda file: file.create_dataset("odd", (N,), np.dtype([("a", "f4"), ("b", "i4")]))),
        "rows of all lengths": _hdf5(lambda file: file.create_dataset("odd", (N,), h5py.vlen_dtype(np.float64))),
        "references": _hdf5(lambda file: file.create_dataset("odd", (N,), h5py.ref_dtype)),
        "an enumeration": _hdf5(lambda file: file.create_dataset("odd", (N,), h5py.enum_dtype({"a": 0, "b": 1}, "i1"))),
        "an opaque type": _hdf5(lambda file: file.create_dataset("odd", (N,), "V7")),
        "a link outside": _hdf5(lambda file: file.__setitem__("odd", h5py.ExternalLink("/etc/passwd", "/x"))),
        "a link to nothing": _hdf5(lambda file: file.__setitem__("odd", h5py.SoftLink("/nothing"))),
        "a group in itself": _hdf5(lambda file: file.__setitem__("odd", file["/"])),
        "without dimensions": _hdf5(lambda file: file.create_dataset("odd", data=np.ones((N, 3)))),
        "an empty dataset": _hdf5(lambda file: file.create_dataset("odd", data=h5py.Empty("f8"))),
        "an empty attribute": _hdf5(lambda file: file["hardness"].attrs.__setitem__("missing_value", h5py.Empty("f8"))),
        "a gap of many": _hdf5(lambda file: file["hardness"].attrs.__setitem__("missing_value", np.arange(5000.0))),
        "scale lost": _hdf5(lambda file: file["stress"].attrs.__delitem__("DIMENSION_LIST")),
        "variables in two groups": lambda path: xr.DataTree.from_dict(
            {"/a": samples()[["stress"]], "/b": samples()[["hardness"]]}
        ).to_netcdf(path, engine="h5netcdf"),
        "a pickle": _pickle,
        "a folder": Path.mkdir,
    },
    "classic": {
        "a size of gigabytes": _classic_declared,
        "CDF-5": lambda path: path.write_bytes(b"CDF\x05" + bytes(200)),
        "the head alone": lambda path: path.write_bytes(b"CDF\x01"),
        "records without end": lambda path: path.write_bytes(b"CDF\x01" + b"\xff" * 4 + bytes(200)),
    },
    "zarr": {
        "a size of terabytes": _zarr_metadata(b"[\n    24,\n    8\n  ]", f"[\n    24,\n    {LARGE}\n  ]".encode()),
        "a negative size": _zarr_metadata(b"24", b"-24"),
        "an unknown type": _zarr_metadata(b"<f8", b"<q9"),
        "objects": _zarr_metadata(b"<f8", b"|O"),
        "an unknown compressor": _zarr_metadata(b"blosc", b"blosk"),
        "a pickle filter": _zarr_metadata(b'"filters": null', b'"filters": [{"id": "pickle"}]'),
        "another fill value": _zarr_metadata(b'"fill_value": null', b'"fill_value": 1'),
        "no such folder": lambda path: None,
        "an empty folder": Path.mkdir,
        "a file": lambda path: path.write_bytes(b"x"),
    },
    "npz": {
        "a size of terabytes": _npz_declared,
        "a name twice": _npz_twice,
        "an array alone": _bare,
        "a pickle": _pickle,
        "objects": _npz(odd=np.array([Executes()] * N, dtype=object)),
        "rows of all lengths": _npz(odd=np.array([[1], [1, 2]] * (N // 2), dtype=object)),
        "a structure": _npz(odd=np.zeros(N, dtype=[("a", "f4")])),
        "nothing": lambda path: np.savez(path),
        "a scalar": _npz(odd=3.0),
        "a name with a slash": _npz(**{"a/b": np.zeros(N)}),
        "a folder": Path.mkdir,
    },
}


# -------------------------------------------------------------------------------------------------------- what reads it


@dataclass(frozen=True)
class Attempt:
    """A file and the command that reads it.

    Attributes:
        kind: What sort of file.
        name: What was done to it.
        make: Writes it.
        file: Its name.
        command: Name of the module below `inference`.
        flags: The rest of the command line, with the file in it.
        wanted: Files that the command may leave.
    """

    kind: str
    name: str
    make: Callable[[Path], object]
    file: str
    command: str
    flags: tuple[str, ...]
    wanted: tuple[str, ...] = ()


def _of_samples(
    kind: str, file: str, write: Callable[[xr.Dataset, Path], None], random: Random, n: int
) -> Iterator[Attempt]:
    svi = ("svi", ("--data", file, "--nodes", "2", "--dry_run"))
    on_disk = ("svi", (*svi[1], "--in_memory", "no"))
    commands = [svi, svi if file.endswith("npz") else on_disk]
    content = {name: _writer(change, write) for name, change in CONTENT.items()}
    made = [*content.items(), *FILES[kind].items()]
    for number, (name, make) in enumerate(made):
        yield Attempt(kind, name, make, file, *commands[number % 2])
    for number, (name, damage) in enumerate(itertools.islice(itertools.cycle(BYTES.items()), n)):
        yield Attempt(
            kind, f"{name}, {number}", _damaged_samples(write, damage, random.spawn(1)[0]), file, *commands[number % 2]
        )


def _writer(
    change: Callable[[xr.Dataset], xr.Dataset], write: Callable[[xr.Dataset, Path], None]
) -> Callable[[Path], object]:
    return lambda path: write(change(samples()), path)


def _damaged_samples(
    write: Callable[[xr.Dataset, Path], None], damage: Damage, random: Random
) -> Callable[[Path], object]:
    """A file of samples, or one file in its folder, with its bytes damaged."""

    def make(path: Path) -> None:
        write(samples(), path)
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        chosen = files[int(random.integers(0, len(files)))]
        chosen.write_bytes(damage(chosen.read_bytes(), random))

    return make


def _of_text(
    kind: str,
    file: str,
    text: str,
    damages: Mapping[str, Damage],
    command: tuple[str, tuple[str, ...], tuple[str, ...]],
    random: Random,
) -> Iterator[Attempt]:
    for name, damage in damages.items():
        content = damage(text.encode(), random)
        yield Attempt(kind, name, partial(Path.write_bytes, data=content), file, *command)


def attempts(random: Random, runs: Path, settings: str, names: str) -> Iterator[Attempt]:
    """All of them; about 550."""
    yield from _of_samples("netcdf", "data.nc", write_netcdf, random, 45)
    yield from _of_samples("classic", "data.nc", write_classic, random, 36)
    yield from _of_samples("zarr", "data.zarr", write_zarr, random, 36)
    yield from _of_samples("npz", "data.npz", write_npz, random, 36)
    graph = ("graph", ("--data", "table.csv", "--json", "graph.json"), ("graph.json",))
    yield from _of_text("table of categories", "table.csv", categories(), TEXTS, graph, random)
    run = str(runs / "run")
    evaluate = ("evaluate", (run, "--labels", "labels.csv", "--json", "scores.json"), ("scores.json",))
    yield from _of_text("table of labels", "labels.csv", labels(), TEXTS, evaluate, random)
    name = ("name", (run, "--names", "names.csv", "--output_dir", "named"), ("named",))
    few = {
        key: TEXTS[key]
        for key in (*list(TEXTS)[:12], "names twice", "rows twice", "an entry empty", "an entry of words")
    }
    yield from _of_text("table of names", "names.csv", names, few, name, random)
    prepare = ("prepare", ("samples.csv", "--output", "made.nc"), ("made.nc", "made_missing.png"))
    yield from _of_text("manifest", "samples.csv", manifest(), TEXTS, prepare, random)
    config = ("svi", ("--config", "settings.yaml", "--dry_run"), ())
    yield from _of_text("settings", "settings.yaml", settings, YAML, config, random)
    ablate = ("ablate", ("--dataset", "circles", "--arms", "arms.yaml", "--output_dir", "ablation", "--dry_run"), ())
    yield from _of_text("arms", "arms.yaml", ARMS, YAML, ablate, random)
    fixed = ("svi", ("--dataset", "circles", "--model.graph", "fixed:graph.txt", "--dry_run"), ())
    few = {key: TEXTS[key] for key in list(TEXTS)[:16]}
    yield from _of_text("graph", "graph.txt", GRAPH, few, fixed, random)
    predict = ("predict", (run, "--data", "data.nc", "--output", "found.nc", "--draws", "2"), ("found.nc",))
    for key in list(CONTENT)[:40]:
        yield Attempt("new samples", key, _writer(CONTENT[key], write_netcdf), "data.nc", *predict)


# -------------------------------------------------------------------------------------------------------- how it goes


def attempted(attempt: Attempt, folder: Path) -> Case:
    """Make the file, read it in a child, and judge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            attempt.make(folder / attempt.file)
        except Exception as error:  # a file that no library writes cannot be met
            return Case("not written", f"{attempt.kind}: {attempt.name}", True, f"{type(error).__name__}: {error}")
    before = set(folder.rglob("*"))
    outcome = in_child(attempt, folder)
    left = {path.relative_to(folder).parts[0] for path in set(folder.rglob("*")) - before}
    wrong = _wrong(attempt, outcome, left)
    return Case(attempt.kind, attempt.name, not wrong, f"{wrong}: {outcome}" if wrong else str(outcome))


def _wrong(attempt: Attempt, outcome: Outcome, left: set[str]) -> str:
    if outcome.status is None:
        return "it hangs"
    if outcome.is_traceback:
        return "a traceback"
    unwanted = left - (set(attempt.wanted) if outcome.status in (0, 3) else set())
    if unwanted:
        return f"left {', '.join(sorted(unwanted))}"
    if outcome.status in (0, 3):  # 3: read, and of a run that had collapsed
        odd = [line for line in outcome.err.splitlines() if "Warning:" in line]
        return odd[0] if odd else "" if outcome.out.strip() else "nothing printed"
    if not outcome.is_refusal:
        return "no refusal in one line"
    return "" if attempt.file in outcome.err else "the file is not named"


def in_child(attempt: Attempt, folder: Path) -> Outcome:
    """Run `main` of the command in a forked child with little more memory than what its imports take."""

    def action() -> int:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MORE_MEMORY, size + MORE_MEMORY))
        warnings.simplefilter("default")
        return int(MAINS[attempt.command](list(attempt.flags)))

    return forked(action, folder, SECONDS)


MAINS: dict[str, Callable[[Sequence[str]], int]] = {}


def load() -> None:
    """Import the commands, once for all children."""
    import importlib

    import torch

    torch.set_num_threads(1)
    for name in ("svi", "graph", "evaluate", "name", "prepare", "ablate", "predict"):
        MAINS[name] = importlib.import_module(f"inference.{name}").main
    for name in ("zarr", "causalpima.inference.reporting.page", "sklearn.mixture", "matplotlib.pyplot"):
        importlib.import_module(name)


def fitted(folder: Path) -> tuple[str, str]:
    """A tiny run in a folder; its settings, and a table of names for it."""
    write_netcdf(samples(), folder / "data.nc")
    flags = ["--pretraining.epochs", "1", "--training.epochs", "1", "--distillation.epochs", "0", "--quiet"]
    home = Path.cwd()
    os.chdir(folder)
    with redirect_stdout(StringIO()):
        MAINS["svi"](["--data", str(folder / "data.nc"), "--nodes", "2", "--output_dir", "run", *flags])
    os.chdir(home)
    names = "cluster,size,N1\n0,12,first\n1,12,second\n"
    return (folder / "run" / "config.yaml").read_text(), names


def main() -> int:
    """Try all files; 1 if one of them was not held."""
    parser = campaign_parser(__doc__)
    parser.add_argument("--only", help="Files of this kind alone.")
    parser.add_argument("--cases", type=int, help="The first so many alone.")
    given = parser.parse_args()
    load()
    with tempfile.TemporaryDirectory(prefix="mutated-") as home:
        runs = Path(home) / "runs"
        runs.mkdir()
        every = attempts(np.random.default_rng(given.seed), runs, *fitted(runs))
        chosen = [attempt for attempt in every if given.only in (None, attempt.kind)][: given.cases]

        def cases() -> Iterator[Case]:
            for attempt in chosen:
                folder = Path(home) / "case"
                folder.mkdir()
                yield attempted(attempt, folder)
                shutil.rmtree(folder)

        return report("mutated files", cases(), given.seed, given.json)


if __name__ == "__main__":
    sys.exit(main())
