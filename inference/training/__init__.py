"""Training of one start; `fit` and `Components` are imported from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causalpima.inference.training.components import Components

if TYPE_CHECKING:
    from causalpima.inference.fit import fit

__all__ = ["Components", "fit"]


def __getattr__(name: str) -> Any:
    # `fit` stands above this package, which it trains with: it is imported when it is asked for.
    if name != "fit":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from causalpima.inference.fit import fit

    return fit
