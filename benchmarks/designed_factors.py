"""False edges on real data: features that were learned, beside factors that the experimenter crossed by design.

    python benchmarks/designed_factors.py --seeds 10 --jobs 2 --folder designed --json designed.json

`resin_coupons`: resin (learned, 8 clusters) and sterilisation (observed). `nutrimouse`: two clusters (learned) beside
diet and beside genotype (both observed), and genotype beside diet (observed both, no fit). Clusters are learned without
labels, with the settings of benchmarks/multimodal.py; the observed factor is a node of known outcome for every
sample. All samples count, replicates as one. In these designs resin and sterilisation, and genotype and diet, are
independent; a cluster of mice may well follow the diet. Printed: p(joined) per seed, and the share of seeds where it is
below one half. What a fit found is kept in the folder, one file each, and not fitted again.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from graph_calibration import SCORES, label
from sklearn.metrics import normalized_mutual_info_score

from causalpima.inference.graphs.dags import GraphKnowledge, all_dags
from causalpima.inference.graphs.enumeration import Evidence, weigh_dags
from causalpima.inference.graphs.hidden import group_weights, log_likelihood_ratio, with_observed
from causalpima.inference.graphs.posterior import hidden_scores

STUDIES = ("resin_coupons", "nutrimouse")
ARMS = {"resin_coupons": "fused", "nutrimouse": "two omics"}

Record = dict[str, Any]


def fit_one(study: str, seed: int, folder: Path) -> Path:
    """What a fit found, fitted now if it is not there."""
    path = folder / f"{study}-{seed}.npz"
    if not path.exists():
        import torch
        from multimodal import STUDIES as MULTIMODAL

        from causalpima.inference.run import Run

        torch.set_num_threads(1)
        data, config = dict(MULTIMODAL[study]())[ARMS[study]](seed)
        run = Run(data, config)
        run.train()
        arrays = run.finish().arrays
        assert arrays is not None, f"{study}, seed {seed}: the fit diverged"
        groups = np.arange(data.n_samples) if data.groups is None else data.groups
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with partial.open("wb") as file:
            factors = {f"factor_{name}": codes for name, codes in data.factors.items()}
            np.savez(file, allow_pickle=False, responsibilities=arrays.responsibilities, groups=groups, **factors)
        os.replace(partial, path)
    return path


class Case(NamedTuple):
    """Two nodes of a study: a name, log p(x | first) of one or the learned clusters, and the codes of the other."""

    name: str
    log_likelihood: np.ndarray
    codes: np.ndarray


def cases(study: str, arrays: Mapping[str, np.ndarray]) -> Iterator[Case]:
    """The pairs of nodes of a study."""
    learned = log_likelihood_ratio(arrays["responsibilities"])
    if study == "resin_coupons":
        yield Case("clusters, sterilisation", learned, arrays["factor_sterilization"])
        return
    genotype, diet = arrays["factor_genotype"], arrays["factor_diet"]
    yield Case("clusters, diet", learned, diet)
    yield Case("clusters, genotype", learned, genotype)
    yield Case("genotype, diet", np.where(np.eye(2)[genotype] > 0, 0.0, -np.inf), diet)


def joined(case: Case, groups: np.ndarray) -> Record:
    """p(joined) under every score, and the normalised mutual information of the most probable codes."""
    outcomes = (case.log_likelihood.shape[1], int(case.codes.max()) + 1)
    likelihood = with_observed(case.log_likelihood, case.codes[:, None], outcomes[1:])
    weights, dags = group_weights(groups), all_dags(2)
    found: Record = {"nmi": float(normalized_mutual_info_score(case.log_likelihood.argmax(1), case.codes))}
    for score in SCORES:
        values = hidden_scores(likelihood, outcomes, dags, score, weights)
        evidence = Evidence(score, len(likelihood), len(np.unique(groups)))
        posterior = weigh_dags(dags, values, GraphKnowledge.none(("first", "second")), evidence)
        found[label(score)] = float(posterior.adjacency_probability[0, 1])
    return found


def main() -> None:
    """Fit what is missing, and print a line per pair of nodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0 ... N-1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("designed"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs = [(study, seed, options.folder) for seed in range(options.seeds) for study in STUDIES]
    records = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for (study, seed, _), path in zip(jobs, pool.map(fit_one, *zip(*jobs, strict=True)), strict=True):
            with np.load(path) as file:
                arrays = dict(file)
            for case in cases(study, arrays):
                records.append({"study": study, "case": case.name, "seed": seed, **joined(case, arrays["groups"])})
    for name in dict.fromkeys((r["study"], r["case"]) for r in records):
        print_case(name, [r for r in records if (r["study"], r["case"]) == name])
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2))


def print_case(name: tuple[str, str], records: Sequence[Record]) -> None:
    """Share of the seeds with p(joined) below one half, and the largest, per score."""
    print(f"{name[0]}: {name[1]}, NMI {np.mean([r['nmi'] for r in records]):.3f}")
    for score in map(label, SCORES):
        values = [r[score] for r in records]
        below = sum(value < 0.5 for value in values)
        spread = f"mean {np.mean(values):.3f}, most {max(values):.3f}"
        print(f"  {score:<8} p(joined) < 0.5 in {below} of {len(values)}; {spread}")


if __name__ == "__main__":
    main()
