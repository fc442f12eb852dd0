"""Tunings: requests of people, jobs of workers, and the database of what they found."""
