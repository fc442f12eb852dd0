"""The device runtime: C++ that plays encoded models through NNAPI, and its build script."""
