"""Messages shared by service, workers and device farm: pydantic models and enums, no I/O.

This is the only package all programs may import. Anything put here is a promise on the wire:
change it by adding optional fields, never by renaming.
"""
