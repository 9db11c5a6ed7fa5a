"""Evaluation, prediction, queries, diagnostics and checks of a finished fit."""
