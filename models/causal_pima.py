"""The generative model as a Pyro program: N from the graph, Z from the mixture, every modality from its decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import pyro
from pyro import poutine
from torch import Tensor, nn

from models.batch import Batch
from models.cells import CellSites, normalised_categorical, sample_cell, sample_nodes
from models.decoders.base import Decoder
from models.graph import HodgeGraph
from models.mixture import GaussianMixture

__all__ = ["CausalPIMA", "data_plate", "observed_where", "register_parameters"]


class CausalPIMA(nn.Module):
    r"""p(N) p(Z | N) ∏_m p(X_m | Z, N) (paper, section 2).

    Sites: `N` (or `N_NAME` per node), `component` where a cell has several Gaussians, `Z`, and `X_NAME` per modality.
    N and `component` are marked for parallel enumeration; use `max_plate_nesting=1`.

    Args:
        graph: The graph over the nodes; gives p(N).
        mixture: p(Z | N).
        decoders: Per modality, p(X_m | Z, N).
        node_names: Names of the nodes; default N1, N2, ...
        sites: `cells`: one site over all cells; `nodes`: one site per node in causal order. Equal distributions.

    Raises:
        ValueError: The mixture has another number of cells than the graph, or not every node has a name of its own.
    """

    def __init__(
        self,
        graph: HodgeGraph,
        mixture: GaussianMixture,
        decoders: Mapping[str, Decoder],
        node_names: Sequence[str] | None = None,
        sites: CellSites = "cells",
    ) -> None:
        super().__init__()
        if graph.n_cells != mixture.n_cells:
            raise ValueError(f"mixture: expected {graph.n_cells} cells as the graph has, got {mixture.n_cells}")
        self.graph, self.mixture = graph, mixture
        self.decoders = nn.ModuleDict(decoders)
        self.node_names = tuple(node_names or (f"N{node + 1}" for node in range(graph.n_nodes)))
        if len(set(self.node_names)) != graph.n_nodes:
            raise ValueError(f"node_names: expected {graph.n_nodes} different names, got {list(self.node_names)}")
        self.sites: CellSites = sites

    def forward(self, batch: Batch) -> None:
        """Run the program on a batch; the modalities are observed where they are present."""
        register_parameters("causal_pima", self)
        log_tables = self.graph.conditional_log_tables()
        with data_plate(batch):
            cell = self._sample_cell(log_tables)
            latent = pyro.sample("Z", self.mixture.component(self._sample_component(cell)))
            for name, decoder in self.decoders.items():
                with observed_where(batch.present[name]):
                    pyro.sample(f"X_{name}", decoder(latent, cell), obs=batch.values[name])

    def _sample_cell(self, log_tables: Tensor) -> Tensor:
        if self.sites == "cells":
            return sample_cell(log_tables.sum(0).reshape(-1), are_normalised=True)
        return sample_nodes(self.node_names, log_tables, self.graph.causal_order())

    def _sample_component(self, cell: Tensor) -> Tensor:
        """Index of the Gaussian, drawn within the cell where there is a choice."""
        candidates = self.mixture.cell_components
        if candidates.shape[1] == 1:
            return candidates[cell, 0]
        share = normalised_categorical(self.mixture.cell_log_share[cell])
        return candidates[cell, pyro.sample("component", share, infer={"enumerate": "parallel"})]


def data_plate(batch: Batch) -> AbstractContextManager[Tensor]:
    """The plate over samples that model and guide share; scales sums over the batch to the data set."""
    return pyro.plate("data", batch.n_samples, subsample=batch.index, dim=-1, device=batch.index.device)


def observed_where(present: Tensor | None) -> AbstractContextManager[object]:
    """Mask a likelihood by presence; no mask where the modality is complete."""
    return nullcontext() if present is None else poutine.mask(mask=present)


def register_parameters(name: str, module: nn.Module) -> None:
    """Register a module in Pyro's global parameter store, unless parameters are module-local.

    With `pyro.settings.context(module_local_params=True)`, as training here uses, parameters live in their modules and
    a torch optimiser moves them; without it, `pyro.infer.SVI` finds them in the store.
    """
    if not pyro.settings.get("module_local_params"):
        pyro.module(name, module)
