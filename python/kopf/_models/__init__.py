"""Typed resources: from classes to definitions, and from objects to instances."""
