"""Evaluation datasets."""
