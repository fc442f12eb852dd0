"""One package a noun, each with its own layers."""
