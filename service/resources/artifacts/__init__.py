"""Artifacts and their packages."""
