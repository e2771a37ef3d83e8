"""Requests of operators to the cluster, with the connections of the operator.

The engine does not use them: it has its own client. They are for operators that import Kopf's
internal functions.
"""
