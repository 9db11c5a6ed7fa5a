"""Several starts of one configuration as one computation: stacked parameters, shared minibatches."""
