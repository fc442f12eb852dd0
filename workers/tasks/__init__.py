"""Celery tasks: borders that call, and decide nothing but whose turn it is after an error."""
