"""Android's Neural Networks API as a backend."""
