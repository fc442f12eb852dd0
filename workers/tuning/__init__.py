"""Tuning: schedules for a model's CPU kernels that measure faster than those of the rules."""
