"""Quantizations: requests of people and jobs of workers."""
