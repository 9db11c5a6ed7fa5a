"""What an intervention does to every modality, beside what is observed."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from inference.queries.answer import QueryAnswer
from inference.queries.estimates import INTERVAL
from inference.queries.graph_set import drawn_graph
from inference.results.figures.file_names import file_names
from inference.results.figures.query_images import draw_query_images
from inference.results.figures.query_lines import draw_query_lines
from inference.results.figures.style import add_heading, add_note, figure_style, save_figure
from inference.results.files import make_folder
from inference.results.text import printable, shorten

__all__ = ["draw_query", "write_query_figures"]

_MOST_LISTED = 3


def write_query_figures(answer: QueryAnswer, folder: Path | str) -> list[Path]:
    """Write `query_NAME.png` for every modality.

    Args:
        answer: The answer.
        folder: Where the files go; made where it does not exist.

    Raises:
        OutputError: The disk is full, or the folder can't be written to.
    """
    place = make_folder(folder)
    with figure_style():
        return [
            save_figure(draw_query(answer, name), place / f"query_{file}.png")
            for name, file in file_names(answer.modalities).items()
        ]


def draw_query(answer: QueryAnswer, name: str) -> Figure:
    """Means as they are observed and as they would be, and their differences.

    Args:
        answer: The answer.
        name: The modality.
    """
    found = answer.modalities[name]
    draw = draw_query_images if found.kind == "image" else draw_query_lines
    figure, note = draw(name, found, answer)
    given = ", ".join(f"{printable(node)}={printable(outcome)}" for node, outcome in answer.given.items())
    add_heading(figure, f"{shorten(name, 40)}: mean{_under(answer)}{f', given {given}' if given else ''}")
    add_note(figure, note, _which(answer), *_assumptions(answer))
    return figure


def _under(answer: QueryAnswer) -> str:
    return f" under {answer.labels['do']} and as observed" if "do" in answer.labels else " as observed"


def _which(answer: QueryAnswer) -> str:
    """Which graphs give which answer, where they do not agree."""
    if "do" not in answer.labels or len(answer.answers) == 1:
        return ""
    names, parts = tuple(answer.outcomes), []
    for number, graphs in enumerate(answer.answers[:_MOST_LISTED], start=1):
        weight, drawn = answer.graphs.weights[list(graphs)].sum(), drawn_graph(answer.graphs.dags[graphs[0]], names)
        others = f" and {len(graphs) - 1} more" if len(graphs) > 1 else ""
        parts.append(f"{number} (weight {weight:.2f}): {drawn}{others}")
    counts = f"{len(answer.graphs.dags)} graphs give {len(answer.answers)} answers"
    more = len(answer.answers) - _MOST_LISTED
    rest = f"; and {more} more" if more > 0 else ""
    return f"Not identified: {counts}. {'; '.join(parts)}{rest}."


def _assumptions(answer: QueryAnswer) -> list[str]:
    if "do" not in answer.labels:
        return [f"Rests on {answer.assumptions[0]}."]
    return [
        f"Assumed: no hidden common cause, no selection; {answer.assumptions[0]}; {answer.graphs.sentence}.",
        f"Intervals: {INTERVAL:.0%}, for the sampling of p(N); the mean of a cell counts as known.",
    ]
