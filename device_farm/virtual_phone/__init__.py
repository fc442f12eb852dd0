"""Virtual phones: a profile over the NNAPI simulator, behind an ADB daemon of the farm's own."""
