"""Transposed convolutions: in NHWC, and as what a level has."""
