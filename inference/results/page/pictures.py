"""The figures of a run on its page: in which section, in which order, with which words."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from inference.results.class_findings import Signs
from inference.results.figures.captions import caption, caption_order
from inference.results.figures.file_names import outcome_files
from inference.results.graph_findings import edge_texts
from inference.results.input_files import read_bytes, reason_of
from inference.results.page.parts import Picture
from inference.results.text import printable

__all__ = ["OutcomePictures", "outcome_pictures", "picture_of", "section_pictures"]

OutcomePictures = Mapping[str, list[Picture]]

# Figures are drawn at 150 dots per inch; a page has 96.
_SCREEN_SCALE = 96 / 150
_MOST_BYTES = 2**26
_PNG = b"\x89PNG\r\n\x1a\n"
_SIGNS = Signs("to", "from", "with")


def section_pictures(figures: Iterable[Path], summary: Mapping[str, Any]) -> dict[str, list[Picture]]:
    """The pictures of each section, in reading order; those of single nodes are left out."""
    own = {f"outcomes_{file}" for file in _files(summary).values()}
    found: dict[str, list[Picture]] = {}
    for path in sorted(figures, key=caption_order):
        if path.stem not in own:
            known = caption(path)
            alt = _graph_text(summary) if path.stem == "graph" else known.title
            found.setdefault(known.section, []).append(picture_of(path, known.title, known.text, alt))
    return found


def outcome_pictures(figures: Iterable[Path], summary: Mapping[str, Any]) -> OutcomePictures:
    """By node, the pictures of what distinguishes its outcomes, modality by modality."""
    there = {path.stem: path for path in figures}
    found: dict[str, list[Picture]] = {}
    for (node, modality), file in _files(summary).items():
        path = there.get(f"outcomes_{file}")
        if path is not None:
            alt = printable(f"{modality} for each outcome of {node}, and how the others differ from the first")
            found.setdefault(node, []).append(picture_of(path, "", "", alt))
    return found


def _files(summary: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    return outcome_files(summary["nodes"], summary["modalities"])


def picture_of(path: Path, title: str, text: str, alt: str) -> Picture:
    """The picture itself in base64; its width stands in bytes 16 to 19 of a PNG file.

    Raises:
        ValueError: It is no PNG file, too large for a page, or a link out of the folder of the run.
    """
    try:
        content = read_bytes(path, path.parent.parent, _MOST_BYTES)
    except OSError as error:
        raise ValueError(
            f"{path}: expected a picture, got none that can be read ({reason_of(error)}); remove it"
        ) from error
    if not content.startswith(_PNG):
        raise ValueError(f"{path}: expected a picture in PNG, got something else; remove it")
    width = round(int.from_bytes(content[16:20], "big") * _SCREEN_SCALE)
    return Picture(title, text, alt, base64.b64encode(content).decode("ascii"), width)


def _graph_text(summary: Mapping[str, Any]) -> str:
    """The edges in words."""
    edges = [" ".join(text.split()) for text in edge_texts(summary, 40, _SIGNS)]
    return f"Graph over the nodes: {'; '.join(edges) or 'no edge'}"
