"""Desired children: a function that returns the children that should exist for an object.

The engine applies, repairs and prunes the children, and reports their state in the condition
``Ready``. An observer derives a state from the existing children.
"""

import kopf


@kopf.desired("kopf.dev", "v1", "sites", children=[("v1", "configmaps"), ("v1", "services")])
def parts(spec, name, **_):
    pages = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-{page}"},
            "data": {"text": text},
        }
        for page, text in spec["pages"].items()
    ]
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}
    return [*pages, service]


@kopf.observe("kopf.dev", "v1", "sites", children=[("v1", "configmaps")])
def count(owned, patch, **_):
    patch.status["pages"] = len(owned["v1", "configmaps"])
