"""Import of PyTorch's exported programs (.pt2), without running anything they carry."""
