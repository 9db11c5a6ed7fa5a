"""Run folders that are damaged or forged, read by every command: refused in one line, or read rightly.

A tiny run is copied, a fault is made in the copy, and commands that read run folders are let at it, each in a child of
its own with limits on memory and time. It held if the command ended with 0 (after damage: with the same results as
without) or refused in one line with 2; no code that the folder brings was run, and no secret from outside is in what
was written. `python benchmarks/reliability/folders.py [--seed 0] [--json FILE]`, ten minutes on one core.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import io
import itertools
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from campaign import Case, Outcome, campaign_parser, report

SECRET, MARKER, MODULE = "the-secret-of-the-user", "code-was-run", "code_of_a_stranger"
_SECONDS, _MEMORY = 120, 4 * 2**30
_OWN = [
    *("--dataset", "circles", "--dataset_options.n_samples", "96", "--nodes", "2,2", "--observe", "N1=hue,N2=radius"),
    *("--pretraining.epochs", "15", "--training.epochs", "10", "--training.batch_size", "16", "--read_out.n_init", "1"),
    *("--modality.image.encoder.sizes", "32", "--modality.image.decoder.sizes", "32", "--read_out.sizes", "6"),
    *("--graph.start_steps", "10", "--graph.extra_steps", "2", "--quiet", "--output_dir", "run"),
]
COMMANDS: dict[str, list[str]] = {
    "report": ["run", "--output", "out/report.html"],
    "export": ["run", "--as_labelled", "--output", "out/graph.json"],
    "graph": ["run", "--as_labelled", "--json", "out/found.json"],
    "query": ["run", "--do", "N1=red", "--json", "out/found.json", "--draws", "20"],
    "evaluate": ["run", "--draws", "2", "--json", "out/found.json"],
    "predict": ["run", "--data", "new.npz", "--draws", "4", "--output", "out/predicted.nc", "--json", "out/found.json"],
    "diagnose": ["run", "--json", "out/found.json"],
    "check": ["run", "--repetitions", "2", "--json", "out/found.json"],
    "mcmc": ["run", "--chains", "1", "--warmup", "5", "--draws", "5", "--json", "out/found.json"],
    "name": ["run", "--json", "out/found.json"],
    "svi": ["--resume", "run", "--quiet", "--json", "out/found.json"],
}
_LIGHT = ("report", "export", "graph", "query", "evaluate", "predict", "name", "svi", "diagnose")


class Fault(NamedTuple):
    """What is done to a copy of the run, and which commands are let at it.

    Attributes:
        kind: For the counts.
        name: Enough to repeat it.
        make: Does it to the folder in which the folder `run` lies.
        commands: Names in `COMMANDS`.
        is_damage: An accident: whoever goes on has to come to the same results.
    """

    kind: str
    name: str
    make: Callable[[Path], object]
    commands: tuple[str, ...]
    is_damage: bool = False


# Children


def run_child(home: Path, command: str, words: list[str]) -> Outcome:
    """Run a command in a fork of this process, in which everything is imported already."""
    files = [home / "stdout", home / "stderr"]
    child = os.fork()
    if child == 0:
        status = 70
        with contextlib.suppress(BaseException):
            status = _in_child(home, command, words, files)
        os._exit(status)
    end = time.monotonic() + _SECONDS
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    if done[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return Outcome(None, "", f"still running after {_SECONDS} s")
    out, err = (file.read_text(errors="replace") for file in files)
    return Outcome(os.waitstatus_to_exitcode(done[1]), out, err)


def _in_child(home: Path, command: str, words: list[str], files: list[Path]) -> int:
    os.chdir(home)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY, now + _MEMORY))
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = io.TextIOWrapper(os.fdopen(1, "wb")), io.TextIOWrapper(os.fdopen(2, "wb"))
    try:
        status = int(importlib.import_module(f"inference.{command}").main(words))
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


# Faults of bytes


def _files(run: Path) -> list[str]:
    """Files of a run that commands read."""
    heads = ("config.yaml", "summary.json", "posterior.nc", "metrics.jsonl", "evaluate.json", "diagnose.json")
    final = sorted(str(path.relative_to(run)) for path in (run / "checkpoint" / "final").rglob("*") if path.is_file())
    return [*heads, *final, "figures/graph.png"]


def _readers(file: str, draw: random.Random, n: int) -> tuple[str, ...]:
    return tuple(draw.sample(("report",) if file.startswith("figures") else _LIGHT, n if "/graph" not in file else 1))


def damages(run: Path, draw: random.Random) -> Iterator[Fault]:
    """Accidents: bytes that changed, and files that are cut, empty, gone or exchanged."""
    for file in _files(run):
        n = 6 if file.endswith((".nc", ".json")) else 2
        for number in range(n):
            seed = draw.randrange(2**32)
            yield Fault("bytes changed", f"{file} {number}", _flip(file, seed), _readers(file, draw, 2), True)
        for kind, make in (("cut", _cut(file, draw.random())), ("empty", _write(file, b"")), ("gone", _remove(file))):
            yield Fault(f"file {kind}", file, make, _readers(file, draw, 2), True)
        other = draw.choice([name for name in _files(run) if name != file])
        yield Fault("file exchanged", f"{file} for {other}", _exchange(file, other), _readers(file, draw, 2), True)


def _flip(file: str, seed: int) -> Callable[[Path], object]:
    def make(home: Path) -> None:
        draw, content = random.Random(seed), bytearray((home / "run" / file).read_bytes())
        for _ in range(draw.choice((1, 4, 64))):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (home / "run" / file).write_bytes(content)

    return make


def _cut(file: str, share: float) -> Callable[[Path], object]:
    return lambda home: os.truncate(home / "run" / file, int(share * (home / "run" / file).stat().st_size))


def _write(file: str, content: bytes) -> Callable[[Path], object]:
    return lambda home: (home / "run" / file).write_bytes(content)


def _remove(file: str) -> Callable[[Path], object]:
    return lambda home: (home / "run" / file).unlink()


def _exchange(file: str, other: str) -> Callable[[Path], object]:
    return lambda home: (home / "run" / file).write_bytes((home / "run" / other).read_bytes())


# Faults of the file system


def odd_files(run: Path, draw: random.Random) -> Iterator[Fault]:
    """Links out of the folder, pipes, devices, folders, and files without end."""
    for file in _files(run):
        for kind, make in (
            ("link to outside", lambda path: path.symlink_to("../../secret")),
            ("link to a device", lambda path: path.symlink_to("/dev/zero")),
            ("pipe", os.mkfifo),
            ("folder", Path.mkdir),
            ("huge file", lambda path: _sparse(path, 2**38)),
            ("link to itself", lambda path: path.symlink_to(path.name)),
        ):
            readers = _readers(file, draw, 1)
            yield Fault(kind, file, partial(_in_place, file=file, make=make), readers)
    for folder in ("checkpoint", "figures"):
        yield Fault("link to outside", folder, partial(_move_out, name=folder), ("report", "predict"))


def _in_place(home: Path, file: str, make: Callable[[Path], object]) -> None:
    path = home / "run" / file
    path.unlink()
    make(path)


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _move_out(home: Path, name: str) -> None:
    (home / "run" / name).rename(home / f"outside-{name}")
    (home / "run" / name).symlink_to(home / f"outside-{name}")


# Forged settings

_BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n".encode() for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


def settings(run: Path, draw: random.Random) -> Iterator[Fault]:
    """YAML that grows, that says something twice, and names code; everywhere in the settings something odd."""
    text = (run / "config.yaml").read_bytes()
    whole = {
        "bomb": _BOMB + text,
        "nesting": b"x: " + b"[" * 3000 + b"]" * 3000 + b"\n" + text,
        "nesting of braces": b"{a: " * 3000 + b"}" * 3000,
        "twice": text + b"seed: 1\n",
        "list": b"- 1\n",
        "tag": b"x: !!python/object/apply:os.system ['touch code-was-run']\n" + text,
        "binary": bytes(range(256)),
        "newer": text.replace(b"causalpima_format: 1", b"causalpima_format: 99"),
        "no version": text.replace(b"causalpima_format: 1", b"causalpima_format: x"),
        "larger than settings are": text + b"# \n" * 2**21,
    }
    for name, content in whole.items():
        yield Fault("YAML", name, _write("config.yaml", content), ("evaluate", "report", "svi", "name"))
    import yaml

    plain = yaml.safe_load(text)
    for number in range(60):
        forged, where = with_odd_entry(plain, draw)
        content = yaml.safe_dump(forged).encode()
        commands = ("svi", *draw.sample(("evaluate", "name", "report"), 1))
        yield Fault("forged settings", f"{number} {where}", _write("config.yaml", content), commands)
    for name, forged in _naming_code(plain):
        make = _with_code(_write("config.yaml", yaml.safe_dump(forged).encode()))
        yield Fault("code in settings", name, make, ("svi", "evaluate", "name", "check", "diagnose", "report"))


def _naming_code(plain: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    places = (
        *(("model", "prior"), ("model", "graph"), ("guide", "fusion"), ("modality", "image", "encoder", "kind")),
        *(("modality", "image", "decoder", "kind"), ("read_outs", "image"), ("training",), ("device",), ("data",)),
    )
    for place in places:
        for value in (f"{MODULE}:Mine", f"{MODULE}.Mine", {"class_path": f"{MODULE}.Mine", "init_args": {}}):
            forged = copy.deepcopy(plain)
            at: Any = forged
            for name in place[:-1]:
                at[name] = at.get(name) or {}
                at = at[name]
            at[place[-1]] = value
            yield f"{'.'.join(place)} {value}", forged


def _with_code(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def both(home: Path) -> None:
        text = f"import pathlib\npathlib.Path({str(home / MARKER)!r}).touch()\nclass Mine: pass\n"
        (home / f"{MODULE}.py").write_text(text)
        make(home)

    return both


def with_odd_entry(plain: Any, draw: random.Random) -> tuple[Any, str]:
    """A copy with one entry that is gone or of another kind, and which."""
    found = copy.deepcopy(plain)
    places = list(_places(found))
    parent, key, where = draw.choice(places)
    value: object = draw.choice(
        ["gone", None, "text", -1, 0, 10**30, 1.5, float("nan"), True, [], {}, ["x"], {"x": 1}, [[[]]]]
    )
    if value == "gone":
        del parent[key]
    else:
        parent[key] = value
    return found, f"{where} = {value!r}"


def _places(value: Any, where: str = "") -> Iterator[tuple[Any, Any, str]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in list(pairs):
        yield value, key, f"{where}/{key}"
        yield from _places(entry, f"{where}/{key}")


# Forged results


def summaries(run: Path, draw: random.Random) -> Iterator[Fault]:
    """Entries of summary.json and of results of later commands that are gone or of another kind."""
    for file, n in (("summary.json", 90), ("evaluate.json", 10), ("diagnose.json", 10)):
        plain = json.loads((run / file).read_text())
        for number in range(n):
            forged, where = with_odd_entry(plain, draw)
            make = _write(file, json.dumps(forged).encode())
            readers = draw.sample(("report", "export", "graph", "query", "evaluate", "mcmc", "svi"), 2)
            yield Fault(f"forged {file}", f"{number} {where}", make, ("report", *readers))
    text = (run / "summary.json").read_text()
    for name, content in {
        "nesting": "[" * 10**5,
        "nesting of names": '{"a":' * 10**5,
        "list": "[1]",
        "newer": text.replace('"causalpima_format": 1', '"causalpima_format": 99'),
        "long number": text.replace('"seed": 0', f'"seed": {"9" * 6000}'),
        "script": text.replace('"circles"', '"<script>alert(1)</script>"'),
    }.items():
        yield Fault("JSON", name, _write("summary.json", content.encode()), ("report", "evaluate", "graph", "svi"))


def posteriors(run: Path, draw: random.Random) -> Iterator[Fault]:
    """netCDF that lacks something, is of other shapes, larger than the memory, or reaches out of its file."""
    names: list[str] = []
    with h5py.File(run / "posterior.nc") as file:
        file.visit(names.append)
    readers = ("report", "export", "graph", "query", "evaluate", "diagnose", "mcmc", "check")
    for name in draw.sample(names, min(40, len(names))):
        for what in ("gone", "other shape", "text"):
            make = _edit(partial(_change, name=name, what=what))
            yield Fault(f"netCDF: {what}", name, make, tuple(draw.sample(readers[:6], 2)))
    huge = {"variational/responsibilities": "report", "variational/log_joint": "graph", "posterior/Z": "evaluate"}
    for name, command in huge.items():
        make = _edit(partial(_change, name=name, what="huge"))
        yield Fault("netCDF: huge", name, make, (command, "query"))
    for what in ("link", "storage", "virtual", "soft"):
        make = _edit(partial(_reach_out, what=what))
        yield Fault("netCDF: reaches out", what, make, ("report", "evaluate", "export"))
    for value in ("no JSON", "[]", "null", '{"config": 1}', '{"config": {"graph": []}}', "[" * 10**5, 7):
        make = _edit(partial(set_attribute, key="facts", value=value))
        yield Fault("netCDF: facts", str(value)[:20], make, ("report", "graph", "mcmc"))
    make = _edit(partial(set_attribute, key="causalpima_format", value=99))
    yield Fault("netCDF: newer", "99", make, ("report", "graph", "evaluate", "query", "mcmc", "check", "diagnose"))


def set_attribute(file: h5py.File, key: str, value: object) -> None:
    """Set an attribute of the whole file."""
    file.attrs[key] = value


def _edit(change: Callable[[h5py.File], object]) -> Callable[[Path], object]:
    """Change the file as a forger does, who brings the checksums in line."""

    def make(home: Path) -> None:
        with h5py.File(home / "run" / "posterior.nc", "r+") as file:
            change(file)
        summary = json.loads((home / "run" / "summary.json").read_text())
        if "checksums" in summary:
            digest = hashlib.sha256((home / "run" / "posterior.nc").read_bytes()).hexdigest()
            summary["checksums"]["posterior.nc"] = digest
            (home / "run" / "summary.json").write_text(json.dumps(summary))

    return make


def _change(file: h5py.File, name: str, what: str) -> None:
    found = file[name]
    shape, kind = getattr(found, "shape", (1,)), getattr(found, "dtype", np.dtype("f4"))
    del file[name]
    if what == "other shape":
        file.create_dataset(name, shape=(*(size + 1 for size in shape), 2), dtype=kind)
    elif what == "text":
        file.create_dataset(name, data=np.full(shape, "x", dtype=object), dtype=h5py.string_dtype())
    elif what == "huge":
        file.create_dataset(name, shape=(2**15,) * (len(shape) + 1), dtype="f8", chunks=True)


def _reach_out(file: h5py.File, what: str) -> None:
    secret = str(Path(file.filename).parent.parent / "secret")
    del file["variational/responsibilities"]
    if what == "link":
        file["variational/responsibilities"] = h5py.ExternalLink("../other.nc", "/variational/responsibilities")
    elif what == "soft":
        file["variational/responsibilities"] = h5py.SoftLink("/variational/responsibilities")
    elif what == "storage":
        external = [(secret, 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("variational/responsibilities", shape=(2, 2), dtype="u1", external=external)
    else:
        layout = h5py.VirtualLayout(shape=(96, 4), dtype="f4")
        layout[:] = h5py.VirtualSource("../other.nc", "variational/responsibilities", shape=(96, 4))
        file.create_virtual_dataset("variational/responsibilities", layout)


# Forged checkpoints


class _Payload:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {MARKER}",)


def checkpoints(run: Path, draw: random.Random) -> Iterator[Fault]:
    """States with code in them, weights of other shapes, forged descriptions, with checksums to go with them."""
    (place,) = (run / "checkpoint" / "final").glob("epoch-*")
    inner = place.relative_to(run)
    readers = ("predict", "evaluate", "query", "name", "diagnose", "check")
    torch_pickle, bare = io.BytesIO(), pickle.dumps({"description": _Payload()})
    torch.save({"description": _Payload()}, torch_pickle)
    for name, content in (("torch", torch_pickle.getvalue()), ("bare", bare)):
        yield Fault("pickle", name, _signed(inner, "state.pt", content), readers)
    for file in ("weights.safetensors", "summary.json", "posterior.nc"):
        make = _signed(inner, file, bare) if file.startswith("weights") else _write(file, bare)
        yield Fault("pickle", file, make, readers)
    state = torch.load(place / "state.pt", weights_only=True)
    for number in range(60):
        forged, where = with_odd_entry(state["description"], draw)
        buffer = io.BytesIO()
        torch.save({**state, "description": forged}, buffer)
        make = _signed(inner, "state.pt", buffer.getvalue())
        yield Fault("forged description", f"{number} {where}", make, tuple(draw.sample(readers[:4], 1)))
    for place_in in (("guide", "fusion"), ("model", "graph"), ("modality", "image", "decoder", "kind")):
        for value in (f"{MODULE}:Mine", "fixed:Mine", f"{MODULE}:missing"):
            forged = copy.deepcopy(state["description"])
            at = forged["config"]
            for name in place_in[:-1]:
                at = at[name]
            at[place_in[-1]] = value
            buffer = io.BytesIO()
            torch.save({**state, "description": forged}, buffer)
            make = _with_code(_signed(inner, "state.pt", buffer.getvalue()))
            yield Fault("code in description", f"{'.'.join(place_in)} {value}", make, ("predict", "name", "query"))
    manifest = json.loads((place / "manifest.json").read_text())
    for number in range(20):
        forged, where = with_odd_entry(manifest, draw)
        make = _write(str(inner / "manifest.json"), json.dumps(forged).encode())
        yield Fault("forged manifest", f"{number} {where}", make, tuple(draw.sample(readers[:4], 1)))


def _signed(inner: Path, name: str, content: bytes) -> Callable[[Path], object]:
    """Write a file of a checkpoint, and its checksum."""

    def make(home: Path) -> None:
        place = home / "run" / inner
        (place / name).write_bytes(content)
        manifest = json.loads((place / "manifest.json").read_text())
        manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
        (place / "manifest.json").write_text(json.dumps(manifest))

    return make


# The campaign


def results_in(home: Path) -> dict[str, Any]:
    """What a command left, without times and versions."""
    found = {}
    for path in sorted((home / "out").glob("*.json")):
        found[path.name] = _timeless(json.loads(path.read_text()))
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(entry) for key, entry in value.items() if key not in ("seconds", "versions")}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


def held(home: Path, outcome: Outcome, expected: dict[str, Any] | None) -> tuple[bool, str]:
    """Whether a command did what it promises, and what it did."""
    if (home / MARKER).exists():
        return False, "code of the folder was run"
    written = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink() and path.name != "secret"]
    texts = [outcome.out.encode(), outcome.err.encode(), *(p.read_bytes() for p in written if p.stat().st_size < 2**26)]
    if any(SECRET.encode() in text for text in texts):
        return False, "the secret got out"
    if outcome.is_traceback or outcome.status not in (0, 2, 3):
        return False, str(outcome)
    if outcome.status == 2 and not outcome.is_refusal:
        return False, f"no refusal in one line: {outcome.err[:300]!r}"
    if outcome.status == 0 and expected is not None and results_in(home) != expected:
        return False, "other results, without a word"
    return True, str(outcome)


def faults_of(run: Path, seed: int) -> list[Fault]:
    """All faults, from one seed."""
    makers = (damages, odd_files, settings, summaries, posteriors, checkpoints)
    return [fault for number, make in enumerate(makers) for fault in make(run, random.Random(f"{seed} {number}"))]


def main() -> int:
    """Run the campaign."""
    parser = campaign_parser(__doc__)
    parser.add_argument("--only", default="", help="Only kinds of faults with this in their name.")
    parser.add_argument("--cases", type=int, default=400, help="Most faults with a command each (default 400).")
    arguments = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-")
    torch.set_num_threads(1)
    for command in COMMANDS:
        importlib.import_module(f"inference.{command}")
    with tempfile.TemporaryDirectory(prefix="folders-") as place:
        base = Path(place) / "base"
        _make_base(base)
        expected = {command: _reference(Path(place), base, command) for command in COMMANDS}
        faults = [fault for fault in faults_of(base / "run", arguments.seed) if arguments.only in fault.kind]
        cases = [_case(Path(place), base, *one, expected) for one in chosen(faults, arguments.cases, arguments.seed)]
    return report("folders", cases, arguments.seed, arguments.json)


def _make_base(base: Path) -> None:
    base.mkdir()
    for command, words in (("svi", _OWN), ("evaluate", ["run"]), ("diagnose", ["run"])):
        outcome = run_child(
            base, command, [*words, *(["--json", "run/evaluate.json"] if command == "evaluate" else [])]
        )
        if outcome.status not in (0, 3):
            raise SystemExit(f"the run to be damaged could not be made: {command}: {outcome}")
    images = np.random.default_rng(0).random((4, *_shape(base / "run")), dtype=np.float32)
    np.savez(base / "new.npz", image=images)
    (base / "secret").write_text(f"{SECRET}\n" * 100)
    shutil.copy(base / "run" / "posterior.nc", base / "other.nc")


def _shape(run: Path) -> list[int]:
    shape: list[int] = json.loads((run / "summary.json").read_text())["modalities"]["image"]["shape"]
    return shape


@contextlib.contextmanager
def _copy(place: Path, base: Path) -> Iterator[Path]:
    home = place / "case"
    shutil.copytree(base, home)
    (home / "out").mkdir()
    try:
        yield home
    finally:
        shutil.rmtree(home)


def _reference(place: Path, base: Path, command: str) -> dict[str, Any]:
    with _copy(place, base) as home:
        outcome = run_child(home, command, COMMANDS[command])
        if outcome.status not in (0, 3):
            raise SystemExit(f"{command} fails on the whole run: {outcome}\n{outcome.err}")
        return results_in(home)


def chosen(faults: list[Fault], n: int, seed: int) -> list[tuple[Fault, str]]:
    """At most `n` pairs of a fault and a command, as many of each kind as there are, in turn."""
    draw, pairs = random.Random(seed), [(fault, command) for fault in faults for command in fault.commands]
    draw.shuffle(pairs)
    by_kind: dict[str, list[tuple[Fault, str]]] = {}
    for pair in pairs:
        by_kind.setdefault(pair[0].kind, []).append(pair)
    in_turn = (pair for turn in itertools.zip_longest(*by_kind.values()) for pair in turn if pair is not None)
    return list(itertools.islice(in_turn, n))


def _case(place: Path, base: Path, fault: Fault, command: str, expected: dict[str, dict[str, Any]]) -> Case:
    with _copy(place, base) as home:
        fault.make(home)
        outcome = run_child(home, command, COMMANDS[command])
        good, found = held(home, outcome, expected[command] if fault.is_damage else None)
    if not good:
        print(f"not held: {fault.kind}: {fault.name}: {command}: {found}", file=sys.stderr, flush=True)
    return Case(fault.kind, f"{fault.name}: {command}", good, "" if good else found)


if __name__ == "__main__":
    sys.exit(main())
