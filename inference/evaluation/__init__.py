"""How well a fit recovers what is known: nodes, graphs, calibration, and what explains the modalities."""
