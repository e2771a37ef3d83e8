"""Desired children: a function from an object to what should exist because of it.

The engine applies the children, repairs and prunes them, and reports them in the condition
``Ready``. An observer concludes something from the children that there are.
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
