"""What a run leaves: export, evaluation, figures, report."""
