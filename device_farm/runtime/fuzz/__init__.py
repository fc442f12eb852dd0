"""Fuzzers of what the device runtime reads; see README.md of the runtime."""
