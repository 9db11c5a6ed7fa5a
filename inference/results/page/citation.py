"""How to cite a run: the paper of the method, and this software."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.results.text import printable

__all__ = ["bibtex"]

_PAPER = """\
@misc{walker2023causal,
  title         = {Causal disentanglement of multimodal data},
  author        = {Walker, Elise and Actor, Jonas A. and Martinez, Carianne and Trask, Nathaniel},
  year          = {2023},
  eprint        = {2310.18471},
  archivePrefix = {arXiv}
}"""


def bibtex(versions: Mapping[str, Any]) -> str:
    """Two entries in BibTeX.

    Args:
        versions: Of the libraries, with `causalpima`.
    """
    version = printable(versions.get("causalpima", "unknown"))
    software = f"""\
@software{{causalpima,
  title   = {{causalPIMA: causal disentanglement of multimodal data in Pyro}},
  version = {{{version}}},
  year    = {{2026}},
  note    = {{Implementation of arXiv:2310.18471}}
}}"""
    return f"{_PAPER}\n\n{software}"
