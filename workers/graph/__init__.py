"""The compiler's view of a Relax main function: a flat list of bindings with their origins."""
