"""The NNAPI simulator: a libneuralnetworks.so for Linux, the accelerator of virtual phones."""
