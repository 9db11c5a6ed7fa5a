"""Training of one start; `fit` and `Components` are imported from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.fit import fit
    from inference.training.components import Components

__all__ = ["Components", "fit"]


def __getattr__(name: str) -> Any:
    # `fit` stands above this package, which it trains with: it is imported when it is asked for.
    if name == "fit":
        from inference.fit import fit

        return fit
    if name == "Components":
        from inference.training.components import Components

        return Components
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
