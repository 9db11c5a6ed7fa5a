"""What would happen: interventions upon the nodes of a finished fit, in nodes and in every modality."""
