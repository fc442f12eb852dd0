"""Celery workers that turn an uploaded model into Android artifacts with Apache TVM."""
