"""Lightkube in the same loop, with server-side apply of children."""

from lightkube import AsyncClient
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.core_v1 import ConfigMap

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_):
    settings.persistence.finalizer = "volumes.kopf.dev/finalizer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="my-op.dev")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="my-op.dev")


@kopf.on.create("volumes")
async def create(body, name, namespace, **_):
    client = AsyncClient()
    owner = OwnerReference(
        apiVersion=body["apiVersion"], kind=body["kind"], name=name, uid=body["metadata"]["uid"]
    )
    meta = ObjectMeta(name=f"{name}-light", namespace=namespace, ownerReferences=[owner])
    created = await client.create(ConfigMap(metadata=meta, data={"a": "b"}))
    return created.metadata.name


@kopf.on.delete("volumes")
async def delete(name, namespace, **_):
    await AsyncClient().delete(ConfigMap, f"{name}-light", namespace=namespace)
