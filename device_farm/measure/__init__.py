"""What the numbers of a run mean. Pure: no phone, no network, no files."""
