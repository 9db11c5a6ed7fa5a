"""What side information leaves undetermined: labellings, nodes, edges; and what to add."""

from inference.identifiability.identify import identify
from inference.identifiability.report import IdentifiabilityReport
from inference.identifiability.side_information import Environment, SideInformation

__all__ = ["Environment", "IdentifiabilityReport", "SideInformation", "identify"]
