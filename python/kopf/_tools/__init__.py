"""Toolkits for operators: children of objects, webhook servers, test runners."""
