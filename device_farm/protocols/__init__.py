"""What can be done with a phone. Strategies know only these; drivers implement them."""
