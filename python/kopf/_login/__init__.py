"""Logins to clusters."""
