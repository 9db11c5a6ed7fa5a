"""Several starts of one configuration on the same data: run side by side, compared, the best one kept."""
