"""Benchmarks: programs that print one JSON document each, which names the machine."""
