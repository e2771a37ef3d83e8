"""Settings of an operator, and the storages that keep its state on objects."""
