"""What a summary says of the environments of the samples, above all of those that were not made use of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["environments_sentence", "undeclared_environments"]

Summary = Mapping[str, Any]


def environments_sentence(summary: Summary) -> str:
    """How many environments there are besides the observational one; empty without environments."""
    found = summary.get("environments") or {}
    count = found.get("n_besides_observational", 0)
    if not count:
        return ""
    use = {"do": "", "soft": ", soft: they name no clusters, and direct edges"}
    said = use.get(found["kind"], ", not declared: they name no clusters")
    return f"{count} environment{'s' if count != 1 else ''} besides the observational one{said}"


def undeclared_environments(summary: Summary) -> list[str]:
    """The suggestion to declare the environments, where they could name nodes and do not; else none."""
    found = summary.get("environments") or {}
    is_named = (summary.get("identifiability") or {}).get("is_named", False)
    if is_named or found.get("kind") in ("do", "soft") or not found.get("n_besides_observational"):
        return []
    return ["declare the environments by --environments.kind do, if each sets its node whatever its causes"]
