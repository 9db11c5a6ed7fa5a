"""A law on the positions and the scale of a modality, as a function of unconstrained parameters."""

from __future__ import annotations

from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import jvp

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
        """The curve and its exact derivatives with respect to u, forward mode, all parameters in one pass."""
        n_parameters, batch = self.n_parameters, unconstrained.shape
        basis = torch.eye(n_parameters, dtype=unconstrained.dtype, device=unconstrained.device)
        tangents = basis.reshape(n_parameters, *(1,) * (len(batch) - 1), n_parameters).expand(n_parameters, *batch)
        copies = unconstrained.detach().expand(n_parameters, *batch).contiguous()
        curve, derivatives = _jvp(self, (copies,), (tangents.contiguous(),))
        return curve[0], derivatives.movedim(0, -1)


def _jvp(function: Any, primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """`torch.func.jvp`, whose declared result has a third member that only exists with auxiliary output."""
    value, tangent = cast("tuple[Tensor, Tensor]", jvp(function, primals, tangents))
    return value, tangent
