"""What a mask of modalities and nodes may be, and what does not go with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["check_mask"]

_EXAMPLE = "for example image=shape,hue"


def check_mask(config: FitConfig) -> None:
    """Refuse a mask that means nothing, and settings that mean nothing with it.

    Raises:
        ValueError: A modality that sees no node, one node twice, or a node that does not exist; a node that no modality
            sees; settings of the fusion of encoders, of which there is none.
    """
    if not isinstance(config.mask, Mapping):
        raise ValueError(f"mask: expected nodes by modality, {_EXAMPLE}, got {config.mask!r}")
    if not config.mask:
        return
    for name, nodes in config.mask.items():
        _check_nodes(name, nodes, list(config.nodes))
    unseen = [node for node in config.nodes if not any(node in nodes for nodes in config.mask.values())]
    if unseen:
        raise ValueError(
            f"mask: expected every node in the sight of a modality, got none that sees {unseen[0]}; nothing can be "
            "learned of it, leave it out of the nodes"
        )
    for setting, value, off, reason in _fusion(config):
        if value:
            raise ValueError(f"{setting}: expected {off} with a mask, got {str(value).lower()}; {reason}")


def _check_nodes(name: str, nodes: Any, known: list[str]) -> None:
    if not isinstance(nodes, tuple) or not all(isinstance(node, str) for node in nodes):
        raise ValueError(f"mask: expected names of nodes for {name}, {_EXAMPLE}, got {nodes!r}")
    if not nodes:
        raise ValueError(f"mask: expected a node that {name} sees, got none; name one, or leave out the modality")
    for node in nodes:
        if node not in known:
            raise ValueError(f"mask: expected nodes among {', '.join(known)} for {name}, got {node}")
        if nodes.count(node) > 1:
            raise ValueError(f"mask: expected every node once for {name}, got {node} {nodes.count(node)} times")


def _fusion(config: FitConfig) -> Iterator[tuple[str, Any, str, str]]:
    """Settings that are about one block of Z that all modalities share."""
    alone = "each modality has a block of Z of its own, which its own encoder alone gives"
    yield "guide.prior_expert", config.guide.prior_expert, "false", f"{alone}: there is no product for it to enter"
    dropout = f"{alone}, so that no encoder has to do without the others"
    yield "training.modality_dropout", config.training.modality_dropout, "0", dropout
    taught = f"{alone}, so that there is nothing to teach one by the others"
    yield "distillation.epochs", config.distillation.epochs, "0", taught
