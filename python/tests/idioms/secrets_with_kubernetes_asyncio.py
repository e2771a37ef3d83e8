"""The asynchronous client in the loop of the operator; one client for all handlers, in the memo."""

import base64

import kubernetes_asyncio as kubernetes

import kopf


@kopf.on.startup()
async def startup(memo: kopf.Memo, **_):
    await kubernetes.config.load_kube_config()
    memo.client = kubernetes.client.ApiClient()


@kopf.on.cleanup()
async def cleanup(memo: kopf.Memo, **_):
    await memo.client.close()


@kopf.on.create("volumes")
@kopf.on.update("volumes")
async def sync(body, spec, meta, memo: kopf.Memo, patch, **_):
    value = base64.b64encode(str(spec.get("size")).encode()).decode()
    secret = kubernetes.client.V1Secret(
        metadata=kubernetes.client.V1ObjectMeta(name=f"{meta.name}-secret"), data={"size": value}
    )
    kopf.adopt(secret, owner=body)
    api = kubernetes.client.CoreV1Api(memo.client)
    try:
        await api.create_namespaced_secret(meta.namespace, secret)
    except kubernetes.client.ApiException as e:
        if e.status != 409:
            raise
        await api.replace_namespaced_secret(secret.metadata.name, meta.namespace, secret)
    patch.status["secret"] = secret.metadata.name
