from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"k": "x"}}],
    ["create", "two", {"spec": {"k": "x"}}],
    ["patch", "one", {"spec": {"k": "y"}}],
    ["delete", "two"],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.index(*EX)
def idx(name, spec, **_):
    return {(spec["k"], 1): name}


@kopf.on.event(*EX)
def fn(name, idx, type, **_):
    note("event", name, sorted((k[0], sorted(v)) for k, v in idx.items()))
