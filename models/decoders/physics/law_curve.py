"""A law on the positions and the scale of a modality, as a function of unconstrained parameters."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from models.decoders.physics.checks import check_law
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.parameter_vector import ParameterVector
from models.modality import Modality

__all__ = ["LawCurve"]

_LOWEST = -10.0


class LawCurve(nn.Module):
    """u `[*b, P]` -> curve `[*b, D]` on the scale of the model.

    A logarithm is taken of means that are at least `floor`, ten standard deviations below the centre of the data on
    the logarithmic scale; below it the curve is flat and so are its gradients. Nothing measured lies there.

    Args:
        law: The law; it is bound to the modality here.
        modality: Positions, unit and standardisation of the curves.

    Raises:
        ValueError: The modality is no curve, or the law breaks its interface on it.
    """

    position: Tensor

    def __init__(self, law: PhysicsLaw, modality: Modality) -> None:
        super().__init__()
        self.law = law.bind(modality)
        self.parameters_of_law = ParameterVector(self.law.parameters)
        self.standardisation = modality.standardisation
        self.floor = float(self.standardisation.invert(torch.tensor(_LOWEST, dtype=torch.float64)))
        assert modality.positions is not None  # `bind` has seen them
        positions = modality.positions.to(torch.float64)
        check_law(self.law, positions)
        self.register_buffer("position", positions, persistent=False)

    @property
    def n_parameters(self) -> int:
        """P."""
        return len(self.parameters_of_law)

    def in_unit(self, unconstrained: Float[Tensor, "*b P"]) -> Float[Tensor, "*b D"]:
        """The curve in the unit of the data."""
        physical = self.parameters_of_law.to_physical(unconstrained).unsqueeze(-1).unbind(-2)
        arguments = dict(zip(self.parameters_of_law.names, physical, strict=True))
        position = self.position.to(unconstrained.dtype)
        return self.law.mean(position, **arguments).expand(*unconstrained.shape[:-1], position.shape[0])

    def forward(self, unconstrained: Float[Tensor, "*b P"]) -> Float[Tensor, "*b D"]:
        """The curve on the scale of the model."""
        curve = self.in_unit(unconstrained)
        if self.standardisation.transform == "log":
            curve = curve.clamp(min=self.floor)
        return self.standardisation.apply(curve)

    def with_jacobian(
        self, unconstrained: Float[Tensor, "*b P"]
    ) -> tuple[Float[Tensor, "*b D"], Float[Tensor, "*b D P"]]:
        """The curve and its exact derivatives with respect to u.

        `v -> J^T v` is linear, so its derivative by v along each parameter is a column of J: P reverse passes, and laws
        need nothing but reverse mode.
        """
        with torch.enable_grad():
            inputs = unconstrained.detach().requires_grad_()
            curve = self(inputs)
            weights = torch.zeros_like(curve, requires_grad=True)
            (pulled,) = torch.autograd.grad(curve, inputs, weights, create_graph=True)
            columns = [
                torch.autograd.grad(one.sum(), weights, retain_graph=True, materialize_grads=True)[0]
                for one in pulled.unbind(-1)
            ]
        return curve.detach(), torch.stack(columns, -1)
