"""The areas of `attacks.py`."""
