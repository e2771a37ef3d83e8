"""Handlers: their declarations, causes, filters, and how they are called."""
