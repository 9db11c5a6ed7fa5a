"""The tables of docs/ablations.md: one command each, over data sets, arms and seeds.

    python benchmarks/ablations.py --table methods --seeds 10 --jobs 2 --output_dir studies
    python benchmarks/ablations.py --table tools --seeds 10 --jobs 2 --output_dir studies --docs docs/ablations.md

Tables: `methods`, `tools`, `objectives`, `components`, whose arms are in benchmarks/ablations/TABLE.yaml. Every data
set is an ablation (`python -m inference.ablate`) in a folder of its own, which tables share: the same command again
goes on with what is unfinished, and fits that an earlier table has are not repeated. `--docs` writes the tables into
the page, between its markers, and the figures into the folder `images` beside it; `--pages_only` does only that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml
from ablation_pages import write_pages
from data_files import of_one_vector, one_vector, samples, write

from causalpima.inference.ablation.records import Record, write_records

__all__ = ["SOURCES", "TABLES", "Source", "arms_of", "main", "runs_of"]

HERE = Path(__file__).resolve().parent
ONE_MODALITY = ("VaDE",)
"""Methods that know a single modality."""


@dataclass(frozen=True)
class Source:
    """A data set with what holds for all of its fits.

    Attributes:
        dataset: Name of the data set.
        words: Words for `inference.svi`.
        labels: What its nodes are labelled with, `NODE=VARIABLE,...`.
        factors: It is read from a file, with these factors alone; none: it is a named data set.
        several: It has several modalities.
        is_generated: Its samples differ from seed to seed.
    """

    dataset: str
    words: tuple[str, ...] = ()
    labels: str = ""
    factors: tuple[str, ...] = ()
    several: bool = False
    is_generated: bool = False


_CIRCLES = ("--dataset_options.n_samples", "2048")
_CIRCLE_LABELS = "N1=hue,N2=radius,N3=shift"
_LATTICES = Source("lattices", (), "N1=type,N2=quality", several=True, is_generated=True)
_SHORTER = ("--distillation.epochs", "0", "--training.batch_size", "125")

SOURCES: Mapping[str, Source] = {
    "circles": Source("circles", _CIRCLES, _CIRCLE_LABELS, is_generated=True),
    "circles_collider": Source("circles_collider", _CIRCLES, _CIRCLE_LABELS, is_generated=True),
    "lattices": _LATTICES,
    # Methods without cells while training cannot have a law per cell: there, its parameters come from Z for all.
    "lattices_law_of_z": Source(
        "lattices", ("--modality.curve.decoder.source", "latent"), _LATTICES.labels, several=True, is_generated=True
    ),
    "resin_coupons": Source("resin_coupons", (), "N1=resin", ("resin",), several=True),
    "mfeat": Source("mfeat", _SHORTER, "digit=digit", ("digit",), several=True),
}

_HELD_OUT = ("held_out_bound", "held_out_as_trained")
_GRAPHS = ("cpdag_shd", "reported_shd", "trained_shd", "linear_scm_shd")
_SCORES = ("cluster_accuracy", "nmi", "ari", "node_accuracy_mean")


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        sources: Its data sets.
        metrics: What is compared, as `inference.ablate` takes it.
        with_gaps: The gaps between the objectives are measured on its fits, too.
    """

    sources: tuple[str, ...]
    metrics: tuple[str, ...] = field(default=(*_SCORES, "held_out_bound", "entropy", "cpdag_shd", "seconds"))
    with_gaps: bool = False


TABLES: Mapping[str, Table] = {
    "methods": Table(
        ("circles", "circles_collider", "lattices_law_of_z", "resin_coupons", "mfeat"),
        (*_SCORES, *_HELD_OUT, "cross_modal_r2", *_GRAPHS, "seconds"),
    ),
    "tools": Table(("circles", "lattices")),
    "objectives": Table(("circles", "lattices"), with_gaps=True),
    "components": Table(("lattices",)),
}


def arms_of(table: str, source: Source, one_modality: bool) -> dict[str, dict[str, object]]:
    """The arms of a table on a data set: those that know one modality alone, or the others.

    Args:
        table: Name of the table.
        source: The data set.
        one_modality: Whether its modalities are one vector.
    """
    text = (HERE / "ablations" / f"{table}.yaml").read_text(encoding="utf-8").replace("{labels}", source.labels)
    arms: dict[str, dict[str, object]] = yaml.safe_load(text)
    apart = set(ONE_MODALITY) if source.several else set()
    return {name: flags for name, flags in arms.items() if (name in apart) == one_modality}


def main(argv: Sequence[str] | None = None) -> None:
    """Run a table, and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=TABLES, required=True)
    parser.add_argument("--sources", nargs="+", choices=SOURCES, help="data sets; default those of the table")
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0 ... N-1")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--docs", type=Path, help="page to write the tables into")
    parser.add_argument("--pages_only", action="store_true", help="no fits: only the page, from what is there")
    arguments = parser.parse_args(argv)
    root = arguments.output_dir.resolve()
    for name in arguments.sources or TABLES[arguments.table].sources:
        if not arguments.pages_only:
            run(arguments.table, name, arguments.seeds, arguments.jobs, root)
        if arguments.docs is not None:
            write_pages(arguments.table, name, root, arguments.docs)


def run(table: str, name: str, n_seeds: int, n_jobs: int, root: Path) -> None:
    """Run the arms of a table on a data set; leaves `TABLE-NAME.jsonl` with a record per fit.

    Raises:
        CalledProcessError: The settings are refused, or a command broke.
    """
    began = time.perf_counter()
    records: list[Record] = []
    for call in calls(table, name, n_seeds, root):
        found = _ablate(call, TABLES[table].metrics, n_jobs)
        records += found if call.folder == root / name else map(without_likelihood, found)
    write_records(root / f"{table}-{name}.jsonl", records)
    if TABLES[table].with_gaps:
        _measure_gaps(table, name, root)
    _add_time(root / "seconds.json", f"{table}-{name}", time.perf_counter() - began, n_jobs)


def without_likelihood(record: Record) -> Record:
    """Of a fit to all modalities as one vector: log-densities of other data than the other fits have."""
    kept = {name: None if name.startswith("held_out") else value for name, value in record.metrics.items()}
    return replace(record, metrics=kept)


@dataclass(frozen=True)
class Call:
    """One call of `inference.ablate`."""

    words: tuple[str, ...]
    arms: Mapping[str, Mapping[str, object]]
    seeds: str
    folder: Path

    @property
    def arms_file(self) -> Path:
        """Where its arms are written."""
        return self.folder.parent / "arms" / f"{self.folder.name}.yaml"


def calls(table: str, name: str, n_seeds: int, root: Path) -> Iterator[Call]:
    """The calls of a table on a data set: all seeds at once, and apart from them what takes files seed by seed.

    Args:
        table: Name of the table.
        name: Name of the data set, of `SOURCES`.
        n_seeds: Number of seeds.
        root: Folder of all.
    """
    source = SOURCES[name]
    yield Call((*_named(source, root), *source.words), arms_of(table, source, False), str(n_seeds), root / name)
    of_one = arms_of(table, source, True)
    if of_one and source.is_generated:
        for seed in range(n_seeds):
            yield Call(_file(source, root, seed, True), of_one, f"{seed},", root / f"{name}_vector")
    elif of_one:
        yield Call(_file(source, root, 0, True), of_one, str(n_seeds), root / f"{name}_vector")


def _named(source: Source, root: Path) -> tuple[str, ...]:
    return _file(source, root, 0, False) if source.factors else ("--dataset", source.dataset)


def _file(source: Source, root: Path, seed: int, one: bool) -> tuple[str, ...]:
    """Words for a file of the samples, which is written where there is none."""
    path = root / "files" / f"{source.dataset}{'_vector' if one else ''}{f'-{seed}' if source.is_generated else ''}.nc"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        data, config = samples(source.dataset, seed)
        pair = (one_vector(data, config), of_one_vector(config)) if one else (data, config)
        write(*pair, path, source.factors or None)
    return ("--data", str(path), "--config", str(path.with_suffix(".yaml")))


def _ablate(call: Call, metrics: Sequence[str], n_jobs: int) -> list[Record]:
    call.arms_file.parent.mkdir(parents=True, exist_ok=True)
    call.arms_file.write_text(yaml.safe_dump(dict(call.arms), sort_keys=False), encoding="utf-8")
    own = ("--arms", str(call.arms_file), "--seeds", call.seeds, "--jobs", str(n_jobs), "--metrics", ",".join(metrics))
    command = [sys.executable, "-m", "inference.ablate", *call.words, *own, "--output_dir", str(call.folder)]
    ended = subprocess.run(command, cwd=HERE.parent, check=False)
    if ended.returncode not in (0, 3):  # 3: some fits failed, which the records say
        raise subprocess.CalledProcessError(ended.returncode, command)
    lines = (call.folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [Record(**json.loads(line)) for line in lines]


def runs_of(table: str, name: str, root: Path) -> list[Path]:
    """Folders of the finished fits of a table on a data set."""
    lines = (root / f"{table}-{name}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [Record(**json.loads(line)) for line in lines]
    return [root / name / record.run for record in records if record.status in ("ok", "collapsed")]


def _measure_gaps(table: str, name: str, root: Path) -> None:
    runs = [str(run.relative_to(root)) for run in runs_of(table, name, root)]
    command = [sys.executable, str(HERE / "objective_gaps.py"), *runs, "--draws", "128", "--order", "24"]
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    file = root / f"gaps-{name}.json"
    subprocess.run([*command, "--json", str(file)], cwd=root, check=True, env={**os.environ, "PYTHONPATH": path})


def _add_time(path: Path, key: str, seconds: float, n_jobs: int) -> None:
    """Seconds of all calls for a table and a data set so far."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[key] = {"seconds": known.get(key, {}).get("seconds", 0.0) + seconds, "jobs": n_jobs}
    path.write_text(json.dumps(known, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
