r"""p(N | e) of environments that intervene upon one node each.

Under an intervention upon node t(e), the target alone follows another law (Tian and Pearl 2001, UAI):

$$p(N \mid e) = \theta_e(N_{t(e)} \mid N_{pa_e}) \prod_{\ell \neq t(e)} p(N_\ell \mid N_{pa(\ell)}),$$

$pa_e$ being empty for do-type interventions and the parents of the graph for soft ones. All other factors are those of
the graph, whatever these are at the time; without an intervention, $p(N \mid e) = p(N)$.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["EnvironmentTables"]

_NO_TARGET = -1
_RAREST = 1e-12


class EnvironmentTables(nn.Module):
    """The table that the target of every environment has in it; at first there are none.

    Buffers: `target` t(e), int64 `[1 + E]`, -1 where no node has a table of its own; `log_own` log θ_e,
    `[1 + E, C_1, ..., C_L]`, normalised over the axis of the target and constant along those of nodes that it does not
    depend on; 0 where there is no target. Both are None, and no part of a state dict, where there are no environments.
    """

    target: Tensor | None
    log_own: Tensor | None
    _place: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_place", torch.zeros(()), persistent=False)  # says on which device, of which type
        self.clear()

    def clear(self) -> None:
        """Forget all environments."""
        self.register_buffer("target", None)
        self.register_buffer("log_own", None)

    @torch.no_grad()
    def replace(self, targets: Sequence[int | None], tables: Sequence[Tensor | None], like: Tensor) -> None:
        """Take other environments.

        Args:
            targets: Node of every environment, `[1 + E]`; None: no intervention, p(N).
            tables: θ_e, broadcasting to `[C_1, ..., C_L]`, positive mass in every row; None where there is no target.
            like: log p(N), `[C_1, ..., C_L]`.

        Raises:
            ValueError: Another number of tables than of targets, or a table for an environment without a target.
        """
        if [target is None for target in targets] != [table is None for table in tables]:
            raise ValueError(f"tables: expected one for each target, got {len(tables)} for {list(targets)}")
        own = [
            torch.zeros_like(like) if node is None or table is None else _log_table(table, node).to(like)
            for node, table in zip(targets, tables, strict=True)
        ]
        numbers = [_NO_TARGET if node is None else node for node in targets]
        self.register_buffer("target", torch.tensor(numbers, device=like.device))
        self.register_buffer("log_own", torch.stack([each.expand_as(like) for each in own]))

    def log_tables(self, log_tables: Tensor, environment: Tensor | None) -> Tensor:
        """log p(N_l | parents, e) of every sample, `[B, L, C_1, ..., C_L]`; as they come where none is told apart.

        Args:
            log_tables: log p(N_l | parents), `[L, C_1, ..., C_L]`.
            environment: Codes, `[B]`, or None.
        """
        if environment is None or self.target is None or self.log_own is None:
            return log_tables
        nodes = torch.arange(len(log_tables), device=log_tables.device)
        is_own = (self.target[environment].unsqueeze(-1) == nodes).reshape(-1, len(nodes), *[1] * len(nodes))
        return torch.where(is_own, self.log_own[environment].unsqueeze(1), log_tables)

    def log_shift(self, log_tables: Tensor, environment: Tensor | None) -> Tensor | None:
        """log p(N | e) - log p(N) of every sample, `[B, C]`; None where none is told apart."""
        if environment is None or self.target is None or self.log_own is None:
            return None
        has_target = self.target[environment] != _NO_TARGET
        shared = log_tables[self.target[environment].clamp(min=0)].flatten(1)
        return torch.where(has_target.unsqueeze(-1), self.log_own[environment].flatten(1) - shared, 0.0)

    def log_joint(self, log_tables: Tensor) -> Tensor | None:
        """log p(N | e) of every environment, `[1 + E, C_1, ..., C_L]`; None where there are none."""
        if self.target is None:
            return None
        every = torch.arange(len(self.target), device=self.target.device)
        return self.log_tables(log_tables, every).sum(1)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: object) -> None:
        """Become what was saved: environments are read off after training, so that earlier weights have none."""
        target, log_own = (state_dict.get(prefix + name) for name in ("target", "log_own"))
        self.register_buffer("target", None if target is None else target.to(self._place.device, copy=True))
        self.register_buffer("log_own", None if log_own is None else log_own.to(self._place, copy=True))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _log_table(table: Tensor, node: int) -> Tensor:
    clamped = table.clamp(min=_RAREST)
    return (clamped / clamped.sum(node, keepdim=True)).log()
