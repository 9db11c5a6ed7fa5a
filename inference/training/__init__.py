"""Training: state, loop, mixture updates, pretraining, schedules."""
