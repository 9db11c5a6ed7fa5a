"""Whether chains can be believed, and what they found: lines with verdicts, and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inference.graphs.edge_text import edge_text
from inference.graphs.mcmc.chains import Chains
from inference.results.arviz_compat import convergence, energy_fraction
from inference.results.verdicts import Line, Verdict

__all__ = ["ChainFindings"]

_GOOD_R_HAT, _BAD_R_HAT = 1.01, 1.05
_FEWEST_PER_CHAIN = 100
_LEAST_ENERGY_FRACTION = 0.3
_MORE = "more --draws; if chains stay apart, they visit different modes and their average is no posterior"


@dataclass(frozen=True)
class ChainFindings:
    """Diagnostics of several chains, on what does not depend on names and parametrisation.

    Attributes:
        nodes: Names of the nodes.
        cells: Names of the cells.
        chains: The chains.
        is_indicator: Whether `chains.edge` is a soft edge of each draw (`hodge`), or its probability given the tables.
    """

    nodes: tuple[str, ...]
    cells: tuple[str, ...]
    chains: Chains
    is_indicator: bool

    @property
    def edge_probability(self) -> np.ndarray:
        """p(i -> j), `[L, L]`: share of draws with E > 0.5, or the mean of the probabilities."""
        edges = self.chains.edge > 0.5 if self.is_indicator else self.chains.edge
        return edges.mean((0, 1))

    def quantities(self) -> dict[str, np.ndarray]:
        """Invariants by name, `[chain, draw]` each: log density, cells, edges."""
        cells = {f"p({name})": self.chains.cell_probability[..., i] for i, name in enumerate(self.cells)}
        return {"log density": self.chains.log_density, **cells, **self._edges()}

    def to_plain(self) -> dict[str, Any]:
        """`r_hat`, `ess` {bulk, tail}, `edge_probability`, `mean_edge`, `n_divergent`, `e_bfmi`, `lines`."""
        names, (r_hat, bulk, tail) = list(self.quantities()), self._convergence()
        return {
            "nodes": list(self.nodes),
            "edge_probability": self.edge_probability.tolist(),
            "mean_edge": self.chains.edge.mean((0, 1)).tolist(),
            "cell_probability": self.chains.cell_probability.mean((0, 1)).tolist(),
            "r_hat": _plain(names, r_hat),
            "ess": {"bulk": _plain(names, bulk), "tail": _plain(names, tail)},
            "n_divergent": int(self.chains.diverging.sum()),
            "e_bfmi": [_finite(value) for value in energy_fraction(self.chains.energy)],
            "n_chains": len(self.chains.energy),
            "n_draws": self.chains.energy.shape[1],
            "lines": [line.to_plain() for line in self.lines()],
        }

    def lines(self) -> list[Line]:
        """A line per kind of quantity, and for divergences and energies."""
        r_hat, bulk, tail = self._convergence()
        names = list(self.quantities())
        n_cells = len(self.cells)
        kinds = {
            "log density": slice(0, 1),
            "cell probabilities": slice(1, 1 + n_cells),
            "edges": slice(1 + n_cells, None),
        }
        looked = [
            self._line(kind, names[part], r_hat[part], np.minimum(bulk, tail)[part])
            for kind, part in kinds.items()
            if names[part]
        ]
        return [*looked, self._divergences(), self._energies()]

    def _edges(self) -> dict[str, np.ndarray]:
        """Soft edges, and beside them whether they are above one half: each has its own R-hat."""
        found = {}
        for i, j in np.argwhere(~np.eye(len(self.nodes), dtype=bool)):
            name, value = edge_text(self.nodes[i], self.nodes[j]), self.chains.edge[..., i, j]
            found[f"E({name})" if self.is_indicator else f"p({name})"] = value
            if self.is_indicator:
                found[f"{name}"] = (value > 0.5).astype(float)
        return found

    def _convergence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values = np.stack(list(self.quantities().values()), axis=-1)
        r_hat, bulk, tail = convergence(values)
        stuck = (np.ptp(values, axis=1) == 0).all(0) & (np.ptp(values, axis=(0, 1)) > 0)
        r_hat = np.where(stuck & (len(values) > 1), np.inf, r_hat)  # no chain moves, and they disagree
        return r_hat, bulk, tail

    def _line(self, kind: str, names: Sequence[str], r_hat: np.ndarray, ess: np.ndarray) -> Line:
        n_chains, moves = len(self.chains.energy), ~np.isnan(ess)
        if not moves.any() and not np.isinf(r_hat).any():
            return Line(kind, kind, "the same in every draw of every chain", "passes" if n_chains > 1 else "unclear")
        worst = int(np.nanargmax(np.where(np.isnan(r_hat), -np.inf, r_hat)))
        fewest = float(np.nanmin(ess)) if moves.any() else 0.0
        verdict = self._verdict(r_hat, fewest)
        told = f"largest R-hat {r_hat[worst]:.3f} ({names[worst]})" if n_chains > 1 else "one chain, so no R-hat"
        found = f"{told}, smallest effective sample size {fewest:.0f}"
        return Line(kind, kind, found, verdict, "" if verdict == "passes" else _MORE)

    def _verdict(self, r_hat: np.ndarray, fewest: float) -> Verdict:
        n_chains = len(self.chains.energy)
        largest = float(np.nanmax(r_hat)) if np.isfinite(r_hat).any() or np.isinf(r_hat).any() else np.nan
        if largest > _BAD_R_HAT:
            return "fails"
        enough = fewest >= _FEWEST_PER_CHAIN * n_chains
        return "passes" if n_chains > 1 and largest <= _GOOD_R_HAT and enough else "unclear"

    def _divergences(self) -> Line:
        number, total = int(self.chains.diverging.sum()), self.chains.diverging.size
        verdict: Verdict = "passes" if number == 0 else "unclear" if number < 0.01 * total else "fails"
        advice = "" if number == 0 else "the posterior has corners that the sampler misses; see docs/mcmc.md"
        return Line("divergences", "divergent trajectories", f"{number} of {total}", verdict, advice)

    def _energies(self) -> Line:
        lowest = float(np.min(energy_fraction(self.chains.energy)))
        fine = lowest >= _LEAST_ENERGY_FRACTION
        advice = "" if fine else "heavy tails are explored slowly: more --draws and --warmup"
        return Line(
            "e_bfmi", "energy (E-BFMI)", f"smallest of a chain {lowest:.2f}", "passes" if fine else "fails", advice
        )


def _plain(names: Sequence[str], values: np.ndarray) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in zip(names, values, strict=True)}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
