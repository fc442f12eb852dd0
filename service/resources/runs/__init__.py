"""Runs of artifacts on devices, and the leases agents hold."""
