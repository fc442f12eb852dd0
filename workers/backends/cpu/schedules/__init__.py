"""Schedule rules, one file a family; `workers.backends.cpu.schedule` picks among them."""
