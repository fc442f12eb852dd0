"""Content-addressed blobs for workers and agents."""
