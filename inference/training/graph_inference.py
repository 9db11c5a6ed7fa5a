r"""q over graphs during training: steps on its own part of the bound, given the expected counts of the cells.

With $n_c = \sum_n q(c \mid x_n)$, what the bound says of the graph is

$$\mathbb{E}_{q(\xi, S, \theta)}\Bigl[\sum_c n_c \log p(c \mid S, \theta)\Bigr] -
  \mathrm{KL}(q(\xi, S, \theta)\,\|\,p(\xi, S, \theta)),$$

the divergence once for the data set. For the best q(θ | S) the tables integrate out: each family gives its BDeu score
of the counts. Parents are enumerated by Pyro, scores are drawn and reparametrised; networks, mixture and q over graphs
are moved in turns, each up the same bound.
"""

from __future__ import annotations

from functools import partial

import torch
from pyro.infer import TraceEnum_ELBO
from torch import Tensor

from guides.graph_guide import GraphGuide
from inference.training.divergence import check_finite

__all__ = ["fit_graph_guide", "graph_bound"]

_PARTICLES = 256


@torch.enable_grad()
def fit_graph_guide(guide: GraphGuide, cell_count: Tensor, learning_rate: float, n_steps: int) -> None:
    """Move q(ξ, S) by gradient steps and q(θ | S) in closed form, then write the means into the graph.

    Args:
        guide: Changed, and its graph.
        cell_count: n_c, `[C]`.
        learning_rate: Of Adam, which begins anew at every call.
        n_steps: Number of steps.
    """
    guide.set_counts(cell_count)
    optimizer = torch.optim.Adam(guide.parameters(), lr=learning_rate)
    for step in range(n_steps):
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - step / n_steps)
        optimizer.zero_grad(set_to_none=True)
        loss = -graph_bound(guide, _PARTICLES)
        check_finite("objective of the graph", -loss.detach())
        loss.backward()
        optimizer.step()
    guide.write_into_graph()


@torch.enable_grad()
def graph_bound(guide: GraphGuide, n_draws: int) -> Tensor:
    """The bound above in nats, a differentiable scalar, averaged over draws of the scores.

    Args:
        guide: q, with its counts.
        n_draws: Number of draws, all at once.
    """
    elbo = TraceEnum_ELBO(num_particles=n_draws, vectorize_particles=True, max_plate_nesting=0)
    model = partial(guide.graph.sample_parents, guide.log_evidence())
    return -torch.as_tensor(elbo.differentiable_loss(model, guide.sample_parents))
