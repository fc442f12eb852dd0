"""Importers: one module a model format, each giving a `workers.graph.Graph`."""
