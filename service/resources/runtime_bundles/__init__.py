"""Runtime bundles that agents and applications download."""
