"""Accelerators as targets: what can be offloaded to each, and how it is written down."""
