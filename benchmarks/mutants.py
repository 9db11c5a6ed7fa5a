"""Whether the tests notice faults: a seeded set of mutants of the source, each killed by tests that import it or not.

    python benchmarks/mutants.py --json mutants.json --number 200 --jobs 1
    python benchmarks/mutants.py --compare before.json after.json

A mutant is one change of one expression: a comparison (`<` becomes `<=`, `==` becomes `!=`), an operator (`+` becomes
`-`), a constant (moved by one, or a truth value turned), or what a function returns (None). It is made in a copy of
the repository; the test files that import its module, directly or through test helpers, are run with `-x` and a limit
of time. What is killed is recorded after each mutant, so that an interrupted study goes on where it was. Of two
records, `--compare` lists the mutants that were killed before and survive now: power that a change of the tests lost.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Mutant", "compare", "importers", "main", "mutants_of", "mutate", "sample"]

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("models", "guides", "inference/objectives", "inference/graphs", "inference/training")
MOST_TEST_FILES = 6

_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: the file, which of its expressions that can be changed, its line, and what became what."""

    path: str
    number: int
    line: int
    change: str

    @property
    def key(self) -> str:
        """What it is called in a record; line numbers may move between commits, so they are no part of it."""
        return f"{self.path} #{self.number}: {self.change}"


def _changes(tree: ast.AST) -> Iterator[tuple[ast.AST, str, Any, str]]:
    """Nodes that can be changed: the node, its attribute, the new value, and the change in words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
            new = _COMPARISONS[type(node.ops[0])]()
            yield node, "ops", [new, *node.ops[1:]], f"{type(node.ops[0]).__name__} -> {type(new).__name__}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OPERATORS:
            other = _OPERATORS[type(node.op)]()
            yield node, "op", other, f"{type(node.op).__name__} -> {type(other).__name__}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            value = not node.value if isinstance(node.value, bool) else node.value + 1
            yield node, "value", value, f"{node.value} -> {value}"
        elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
            yield node, "value", ast.Constant(None), "return None"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _without_annotations(tree: ast.AST) -> ast.AST:
    """The same nodes without annotations: what changes nothing when the program runs is no mutant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return tree


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Every mutant of a file."""
    found = enumerate(_changes(_without_annotations(ast.parse(source))))
    return [Mutant(path, number, getattr(node, "lineno", 0), change) for number, (node, _, _, change) in found]


def mutate(mutant: Mutant, source: str) -> str:
    """The source with the change.

    Raises:
        ValueError: The file has no such expression: it is another version than the mutant was made of.
    """
    tree = ast.parse(source)
    found = list(_changes(_without_annotations(ast.parse(source))))
    if mutant.number >= len(found) or found[mutant.number][3] != mutant.change:
        raise ValueError(f"{mutant.key}: expected the source that it was sampled from, got another; sample anew")
    # The same expression in the tree that kept its annotations, which jaxtyping checks when the tests run.
    node, attribute, value, change = found[mutant.number]
    where = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0), type(node))
    for own, _, _, own_change in _changes(tree):
        if (getattr(own, "lineno", 0), getattr(own, "col_offset", 0), type(own)) == where and own_change == change:
            setattr(own, attribute, value)
            return ast.unparse(ast.fix_missing_locations(tree))
    raise ValueError(f"{mutant.key}: expected its expression in the source, got none")


def sample(root: Path, number: int, seed: int) -> list[Mutant]:
    """Mutants of the places that carry the mathematics, drawn without replacement; the seed alone decides."""
    paths = sorted(path for place in PLACES for path in (root / place).rglob("*.py") if path.name != "__init__.py")
    every = [m for path in paths for m in mutants_of(path.relative_to(root).as_posix(), path.read_text("utf-8"))]
    return random.Random(seed).sample(every, min(number, len(every)))


def importers(root: Path) -> dict[str, list[str]]:
    """Test files by the module that they import, nearest first: directly, through a helper of the tests, a package."""
    names = {path.stem: _imports(path) for path in (root / "tests").rglob("*.py") if not path.stem.startswith("test_")}
    found: dict[str, list[tuple[int, str]]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        if "end_to_end" in path.parts or "documentation" in path.parts:
            continue
        direct = _imports(path)
        through = {module for helper in direct & set(names) for module in names[helper]}
        for distance, modules in enumerate((direct, through - direct)):
            for module in modules:
                found.setdefault(module, []).append((distance, path.relative_to(root).as_posix()))
    return {module: [path for _, path in sorted(paths)] for module, paths in found.items()}


def _imports(path: Path) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {module.removeprefix("causalpima.") for module in modules}


def _tests_of(mutant: Mutant, tests: Mapping[str, Sequence[str]]) -> list[str]:
    """Files that import the module, else its package, else those beside its namesake in the tests."""
    parts = mutant.path.removesuffix(".py").split("/")
    for length in range(len(parts), 1, -1):
        if found := tests.get(".".join(parts[:length])):
            return list(found[:MOST_TEST_FILES])
    return list(tests.get(parts[0], ()))[:MOST_TEST_FILES]


def _pass(root: Path, tests: Sequence[str], limit: float, python: str) -> bool | None:
    """Whether these tests pass; None where that takes longer than the limit."""
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0


def _outcome(mutant: Mutant, root: Path, tests: Sequence[str], limit: float, python: str) -> str:
    """`killed`, `survived`, `too slow` (which counts as killed), or why nothing can be said.

    What kills is only believed of tests that pass without the mutant, in the same place and within the same limit.
    """
    if not tests:
        return "no tests"
    file = root / mutant.path
    before = file.read_text("utf-8")
    file.write_text(mutate(mutant, before), "utf-8")
    try:
        passed = _pass(root, tests, limit, python)
    finally:
        file.write_text(before, "utf-8")
    if not passed and not _pass(root, tests, limit, python):
        return "no verdict: the tests fail, or are too slow, without it"
    return {True: "survived", False: "killed", None: "too slow"}[passed]


def _copy(root: Path, folder: Path) -> Path:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0")[:-1]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target, follow_symlinks=False)
    return folder


def _study(root: Path, chosen: argparse.Namespace) -> None:
    tests = importers(root)
    file: Path = chosen.json
    done: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    todo = [mutant for mutant in sample(root, chosen.number, chosen.seed) if mutant.key not in done]
    with tempfile.TemporaryDirectory() as parent, ThreadPoolExecutor(chosen.jobs) as pool:
        free = [_copy(root, Path(parent) / str(number)) for number in range(chosen.jobs)]

        def one(mutant: Mutant) -> tuple[Mutant, str, float]:
            copy, begin = free.pop(), time.monotonic()
            try:
                outcome = _outcome(mutant, copy, _tests_of(mutant, tests), chosen.limit, chosen.python)
            finally:
                free.append(copy)
            return mutant, outcome, time.monotonic() - begin

        for future in as_completed([pool.submit(one, mutant) for mutant in todo]):
            mutant, outcome, seconds = future.result()
            record = asdict(mutant) | {"outcome": outcome, "seconds": round(seconds, 1)}
            done[mutant.key] = record | {"tests": _tests_of(mutant, tests)}
            file.write_text(json.dumps(done, indent=1) + "\n", "utf-8")
            print(f"{len(done)}: {outcome:<9} {mutant.path}:{mutant.line} {mutant.change}", flush=True)
    print(_share(done))


def _share(done: Mapping[str, Mapping[str, Any]]) -> str:
    tried = [record for record in done.values() if not record["outcome"].startswith("no ")]
    killed = sum(record["outcome"] != "survived" for record in tried)
    return f"{killed} of {len(tried)} mutants killed, {len(done) - len(tried)} without a verdict"


def compare(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Mutants of both records that were noticed before and are not now."""
    noticed = ("killed", "too slow")
    return [
        key for key, record in before.items()
        if key in after and record["outcome"] in noticed and after[key]["outcome"] == "survived"
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study, or compare two; status 1 where power was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--json", type=Path, default=Path("mutants.json"), help="record; an earlier one is gone on with"
    )
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds per mutant")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--root", type=Path, default=ROOT, help="checkout whose source and tests are used")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    chosen = parser.parse_args(argv)
    if chosen.compare is None:
        _study(chosen.root.resolve(), chosen)
        return 0
    before, after = (json.loads(path.read_text("utf-8")) for path in chosen.compare)
    for record in (before, after):
        print(_share(record))
    lost = compare(before, after)
    print(
        f"{len(before.keys() & after.keys())} mutants in both; killed before and not now: {len(lost)}", *lost, sep="\n"
    )
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
