"""Running of operators."""
