"""What side information leaves undetermined: labellings, nodes, edges; and what to add."""

from inference.clusters.identifiability.identify import identify
from inference.clusters.identifiability.report import IdentifiabilityReport
from inference.clusters.identifiability.side_information import Environment, SideInformation

__all__ = ["Environment", "IdentifiabilityReport", "SideInformation", "identify"]
