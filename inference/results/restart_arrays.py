"""What of a start is kept beside the others, and what several starts found together: plain NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inference.results.arrays import FitArrays
from inference.results.files import write_atomically
from inference.results.input_files import open_regular

__all__ = ["FoundStart", "RestartArrays", "StartArrays", "read_start", "write_start"]

_LIKELIHOOD = "log_likelihood/"


@dataclass(frozen=True)
class StartArrays:
    """What a start that did not diverge found; n samples, C cells, D draws of S samples, L nodes.

    Attributes:
        responsibilities: q(N|X), `[n, C]`.
        nodes: Draws of N, `[D, S, L]`.
        log_weight: log p(X, Z) - log q(Z|X) of the draws, `[D, S]`.
        log_likelihood: Per modality, log p(X_m | Z, N) of the draws, `[D, S]`; NaN where absent.
        log_joint: log p(N), `[C_1, ..., C_L]`.
        latent: Draws of Z, `[D, S, J]`; None of a start that an earlier version made.
        latent_loc: Mean of q(Z|X), `[n, J]`; None alike.
    """

    responsibilities: np.ndarray
    nodes: np.ndarray
    log_weight: np.ndarray
    log_likelihood: Mapping[str, np.ndarray]
    log_joint: np.ndarray
    latent: np.ndarray | None = None
    latent_loc: np.ndarray | None = None

    @classmethod
    def of(cls, fit: FitArrays) -> StartArrays:
        """That of a finished fit."""
        draws = fit.draws
        return cls(
            responsibilities=fit.responsibilities,
            nodes=draws.nodes,
            log_weight=draws.log_weight,
            log_likelihood=draws.log_likelihood,
            log_joint=fit.graph.log_joint,
            latent=draws.latent,
            latent_loc=fit.latent_loc,
        )

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Outcomes per node."""
        return self.log_joint.shape


@dataclass(frozen=True)
class RestartArrays:
    """Several starts side by side: K starts, of which H are chains, with cells numbered as those of the chosen one.

    Attributes:
        status: `ok`, `collapsed` or `diverged`, `[K]` of str.
        entropy: Mean entropy of q(N|X) in nats, `[K]`; NaN where it diverged.
        ari: Adjusted Rand index of every pair of starts, `[K, K]`; NaN with one that diverged.
        chain: Number of the start of each chain, `[H]`: the chosen one first, then the others that did not fail.
        nodes: Draws of N, `[H, D, S, L]`.
        log_weight: log p(X, Z) - log q(Z|X) of the draws, `[H, D, S]`.
        log_likelihood: Per modality, log p(X_m | Z, N) of the draws, `[H, D, S]`.
        responsibilities: q(N|X) of the S samples that have draws, `[H, S, C]`.
        log_joint: log p(N), `[H, C_1, ..., C_L]`.
        node_agreement: Share of the samples with the same outcome as in the chosen start, `[H, L]`.
        cpdag: The best equivalence class of graphs over the cells, `[H, L, L]`; None where it was not searched for.
        latent: Draws of Z, `[H, D, S, J]`, mapped to the latent space of the chosen start (`restart_chains`); None
            where a start of an earlier version has none.
    """

    status: np.ndarray
    entropy: np.ndarray
    ari: np.ndarray
    chain: np.ndarray
    nodes: np.ndarray
    log_weight: np.ndarray
    log_likelihood: Mapping[str, np.ndarray]
    responsibilities: np.ndarray
    log_joint: np.ndarray
    node_agreement: np.ndarray
    cpdag: np.ndarray | None
    latent: np.ndarray | None = None

    @property
    def chosen(self) -> int:
        """Number of the start that was kept."""
        return int(self.chain[0])


@dataclass(frozen=True)
class FoundStart:
    """A start that ended; its arrays are read when they are asked for, since many may not fit into memory together.

    Attributes:
        number: Its number.
        summary: What it found, as `summary.json` of a run has it.
        file: What `write_start` wrote; None if it diverged.
    """

    number: int
    summary: Mapping[str, Any]
    file: Path | None

    @property
    def status(self) -> str:
        """`ok`, `collapsed` or `diverged`."""
        return str(self.summary["status"])

    def read(self) -> StartArrays:
        """Its arrays.

        Raises:
            ValueError: It diverged and has none, or they can't be read.
        """
        if self.file is None:
            raise ValueError(f"restart {self.number}: expected one that found something, got one that diverged")
        return read_start(self.file)


_PLAIN = ("responsibilities", "nodes", "log_weight", "log_joint")
_NEWER = ("latent", "latent_loc")


def write_start(path: Path, arrays: StartArrays) -> None:
    """Write the arrays as `.npz`, whole or not at all.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    content = {name: getattr(arrays, name) for name in (*_PLAIN, *_NEWER) if getattr(arrays, name) is not None}
    content |= {f"{_LIKELIHOOD}{position}": values for position, values in enumerate(arrays.log_likelihood.values())}
    names = np.array(list(arrays.log_likelihood), dtype=np.str_)
    write_atomically(path, lambda file: np.savez(file, allow_pickle=False, modalities=names, **content))


def read_start(path: Path) -> StartArrays:
    """Read what `write_start` wrote.

    Raises:
        ValueError: It can't be read.
    """
    try:
        with open_regular(path, path.parent) as raw, np.load(raw, allow_pickle=False) as file:
            names = [str(name) for name in file["modalities"]]
            likelihood = {name: file[f"{_LIKELIHOOD}{position}"] for position, name in enumerate(names)}
            newer = {name: file[name] for name in _NEWER if name in file}
            return StartArrays(log_likelihood=likelihood, **{name: file[name] for name in _PLAIN}, **newer)
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged archive makes its reader raise
        raise ValueError(
            f"{path}: expected the arrays of a start, got something else; remove its folder, then "
            "--resume makes it again"
        ) from error
