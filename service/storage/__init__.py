"""Content-addressed blobs: a local folder or an S3-compatible store."""
