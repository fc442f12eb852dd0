"""Devices as agents announce them."""
