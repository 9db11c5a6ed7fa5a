"""The kinds of graph that a configuration can ask for."""

from __future__ import annotations

from typing import Literal

__all__ = ["GraphKind"]

GraphKind = Literal["hodge", "exact", "complete", "empty", "fixed"]
"""`hodge`: learned by gradients, as in the paper. The others are hard graphs with tables in closed form."""
