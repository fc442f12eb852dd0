"""The nnfarm service: HTTP API, database, queue outbox, and the client that speaks to them."""

__version__ = "0.1.0"
