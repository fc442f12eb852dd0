"""How things are done with a phone: one module a kind of connection."""
