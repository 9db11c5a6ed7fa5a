r"""The graph of NoCurl: weights times the gradient of a potential (Yu et al. 2021, ICML), in its two steps.

A graph without cycles is $E = W \circ \mathrm{ReLU}(\operatorname{grad} \varphi)$ with
$(\operatorname{grad} \varphi)_{ij} = \varphi_j - \varphi_i$. First E is free, with penalties 10 h and then 1000 h
($h = \operatorname{tr}(I + E \circ E / L)^L - L$). The potential is then the curl-free part of who leads where along
strengths above 0.3, and stays; W is fitted anew. With φ given and W >= 0 free, E_ij is any number where φ_i < φ_j and 0
elsewhere, and that is how it is kept here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.graph.cycles import curl_free_potential, polynomial_cycles
from models.graph.relaxed import RelaxedGraph

__all__ = ["NocurlGraph"]

_WEIGHTS = (10.0, 1000.0)
_KEPT = 0.3


class NocurlGraph(RelaxedGraph):
    """Buffers: `stage`, the number of stages that are solved; `potential` φ `[L]`, 0 until there is one.

    A potential keeps the order that is known of the nodes (`EdgeConstraints.ordered`).

    Args:
        *args: As of `RelaxedGraph`.
        **kwargs: The same.
    """

    stage: Tensor
    potential: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("stage", torch.zeros((), dtype=torch.long))
        self.register_buffer("potential", torch.zeros(self.n_nodes))

    def open_edges(self) -> Tensor:
        """All at first; where there is a potential, those along which it grows."""
        if int(self.stage) < len(_WEIGHTS):
            return super().open_edges()
        return self.potential.unsqueeze(0) > self.potential.unsqueeze(1)

    def cycle_penalty(self, strength: Tensor) -> Tensor:
        """10 h, then 1000 h; 0 where there is a potential."""
        if int(self.stage) < len(_WEIGHTS):
            return _WEIGHTS[int(self.stage)] * polynomial_cycles(strength)
        return strength.new_zeros(())

    def cycles(self) -> float:
        """h_poly."""
        return float(polynomial_cycles(self.soft_strength().detach().double()))

    @torch.no_grad()
    def next_stage(self) -> None:
        """The next weight; after the last one the potential, with strengths as at first."""
        if int(self.stage) == len(_WEIGHTS) - 1:
            found = curl_free_potential(self.soft_strength() > _KEPT)
            self.potential.copy_(self.constraints.ordered(found.to(self.potential)))
            self.edge.fill_(self.first_strength())
        self.stage.add_(1)

    def is_done(self) -> bool:
        """Both penalties and the fit along the potential are solved."""
        return int(self.stage) > len(_WEIGHTS)
