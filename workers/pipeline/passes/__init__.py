"""Rewrites of the whole graph that come before partitioning."""
