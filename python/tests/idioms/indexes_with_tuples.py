"""Indexes by tuples over several resources, joined in handlers; values of any class."""

import dataclasses

import kopf


@dataclasses.dataclass(frozen=True)
class Source:
    namespace: str
    name: str


@kopf.index("configmaps", labels={"app": kopf.PRESENT})
def by_app(namespace, name, labels, **_):
    return {(namespace, labels["app"]): Source(namespace, name)}


@kopf.index("configmaps")
async def names(name, **_):
    return name


@kopf.on.create("volumes")
@kopf.on.update("volumes")
def join(spec, namespace, by_app: kopf.Index, names: kopf.Index, **_):
    found = by_app.get((namespace, spec.get("app")), [])
    if not found:
        raise kopf.TemporaryError("nothing is found", delay=0.3)
    assert all(isinstance(source, Source) for source in found)
    return {"sources": sorted(source.name for source in found), "plain": None in names}
