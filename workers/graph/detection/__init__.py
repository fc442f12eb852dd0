"""Boxes of a detector, decoded and freed of doubles: a call that Relax has no operator for."""
