"""Recurrent layers: one call in the graph, and the steps it stands for."""
