"""A decoder's network from its name, or from `module:function` in a file of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from models.decoders.bodies import NETWORKS, Network
from models.user_code import UserKind, call_user_code, named_object, names_user_code

__all__ = ["is_network", "load_network"]

_NETWORK = "models.decoders.bodies.Network"

_KIND = UserKind("a function", inspect.isfunction, f"a function that makes a {_NETWORK}", "functions")

_FACTS = ("latent_dim", "shape", "sizes", "n_heads", "n_outputs")


def is_network(name: str) -> bool:
    """Whether a kind of decoder is a network: of the table, or a function. A class is a law, and what is not there too.

    Raises nothing: what a name lacks is said where it is loaded.
    """
    if not names_user_code(name):
        return name in NETWORKS
    try:
        named_object("", name, _KIND)
    except ValueError:
        return False
    return True


def load_network(name: str) -> Callable[..., Network]:
    """What makes a network, called as `mlp_network` is.

    Args:
        name: A key of `NETWORKS`, or `module:function`.

    Raises:
        ValueError: It is not there; when called, that it makes no network.
    """
    if name in NETWORKS:
        return NETWORKS[name]
    subject = f"decoder {name}"
    make = named_object(subject, name, _KIND)

    def checked(*arguments: object) -> Network:
        network = call_user_code(subject, make, *arguments, names=_FACTS)
        if not isinstance(network, Network):
            raise ValueError(
                f"{subject}: expected it to make a {_NETWORK}(body, head), got {type(network).__name__}; "
                "docs/components.md shows one"
            )
        return network

    return checked
