"""From side information to the report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from inference.identifiability.counting import count_remaining
from inference.identifiability.edges import edge_knowledge
from inference.identifiability.nodes import find_identified, remaining_readings
from inference.identifiability.report import IdentifiabilityReport
from inference.identifiability.side_information import Environment, SideInformation, read_environment
from inference.identifiability.suggestions import suggest

__all__ = ["identify", "identify_known"]


def identify(
    nodes: Mapping[str, int],
    mask: Mapping[str, Sequence[str]] | None = None,
    labels: Collection[str] = (),
    tiers: Sequence[Collection[str]] = (),
    environments: Iterable[str | Environment] = (),
    independent: bool = False,
) -> IdentifiabilityReport:
    """What side information leaves undetermined: labellings, nodes, edges; and which addition would settle most.

    Args:
        nodes: Outcomes of each node, by name.
        mask: Nodes that each modality sees; none: every modality sees all.
        labels: Nodes whose outcome is known of some samples of every cell.
        tiers: Nodes in order of time, earlier ones first; a node may be in none.
        environments: Experiments besides the observational data: `do(N1)`, `do(N1=0)`, `soft(N1)`, `do(?)`.
        independent: The nodes are known to be independent of each other.

    Raises:
        ValueError: A node that is not there, is seen by no modality, or has fewer than two outcomes; tiers that
            overlap; an environment that can't be read.

    Example:
        >>> report = identify({"N1": 2, "N2": 2, "N3": 2}, {"a": ("N1", "N2"), "b": ("N2", "N3")})
        >>> report.equivalent_labellings, report.identified_nodes
        (4, ('N2',))
        >>> report.suggestions[0].text
        'measure a modality that sees N1 and N3 but not N2'
    """
    known = SideInformation(
        nodes,
        {name: tuple(seen) for name, seen in (mask or {}).items()},
        tuple(labels),
        tuple(map(tuple, tiers)),
        tuple(read_environment(each) if isinstance(each, str) else each for each in environments),
        independent,
    )
    return identify_known(known)


def identify_known(known: SideInformation) -> IdentifiabilityReport:
    """The same of side information that was read before."""
    identified = find_identified(known)
    return IdentifiabilityReport(
        known,
        count_remaining(known),
        identified,
        remaining_readings(known),
        edge_knowledge(known, identified),
        suggest(known),
    )
