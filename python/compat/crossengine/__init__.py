"""Runs the same operators under Kopf and under this package, and compares what they do.

python -m crossengine --kopf /path/to/venv-with-kopf/bin/python [names...]
"""
