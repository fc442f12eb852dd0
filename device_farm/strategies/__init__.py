"""In what order things are done with a phone; knows protocols, no drivers."""
