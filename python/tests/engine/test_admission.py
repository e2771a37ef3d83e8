"""Reviews reach the handlers through webhook servers in Python."""

from __future__ import annotations

import asyncio

import pytest

import kopf
from kopf._engine.cluster import RequestError

from .conftest import eventually

pytestmark = pytest.mark.asyncio
EX = ("kopf.dev", "v1", "kopfexamples")


async def test_a_custom_server_gets_answers(examples, kopf_operator):
    answers = []

    async def server(fn):
        yield {"url": "https://localhost:1/"}
        request = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "uid1",
                "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
                "operation": "CREATE",
                "userInfo": {"username": "me"},
                "object": {"kind": "KopfExample", "metadata": {"name": "x"}, "spec": {}},
            },
        }
        answers.append(await fn(request, headers={"A": "b"}, sslpeer={"subject": "me"}))
        await asyncio.Event().wait()

    given = {}

    @kopf.on.startup(id="start")
    async def start(settings, **_):
        settings.admission.server = server

    @kopf.on.validate(*EX, id="validate")
    async def validate(warnings, **kwargs):
        given.update(kwargs)
        warnings.append("beware")
        raise kopf.AdmissionError("no", code=418)

    async with kopf_operator():
        await eventually(lambda: answers)
    response = answers[0]["response"]
    assert response["uid"] == "uid1"
    assert response["allowed"] is False
    assert response["warnings"] == ["beware"]
    assert response["status"] == {"message": "no", "code": 418}
    assert given["operation"] == "CREATE"
    assert given["headers"] == {"A": "b"}
    assert given["sslpeer"] == {"subject": "me"}
    assert given["userinfo"] == {"username": "me"}
    assert given["dryrun"] is False


async def test_a_custom_server_gets_the_exception_of_a_filter(examples, kopf_operator):
    errors = []

    async def server(fn):
        yield {"url": "https://localhost:1/"}
        request = {
            "request": {
                "uid": "uid1",
                "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
                "operation": "CREATE",
                "userInfo": {},
                "object": {"kind": "KopfExample", "metadata": {"name": "x"}, "spec": {}},
            },
        }
        try:
            await fn(request)
        except Exception as e:
            errors.append(e)
        await asyncio.Event().wait()

    @kopf.on.startup(id="start")
    async def start(settings, **_):
        settings.admission.server = server

    @kopf.on.validate(*EX, id="validate", when=lambda spec, **_: spec["size"] > 1)
    async def validate(**_):
        pass

    async with kopf_operator():
        await eventually(lambda: errors)
    assert isinstance(errors[0], KeyError)
    assert errors[0].args == ("size",)


async def test_managed_webhooks_change_and_deny_objects(examples, kopf_operator, kopf_cluster):
    @kopf.on.startup(id="start")
    async def start(settings, **_):
        settings.admission.server = kopf.WebhookServer(addr="127.0.0.1", host="127.0.0.1")
        settings.admission.managed = "auto.kopf.dev"

    @kopf.on.mutate(*EX, id="mutate")
    async def mutate(patch, **_):
        patch.spec["mutated"] = True

    @kopf.on.validate(*EX, id="validate")
    async def validate(spec, **_):
        if spec.get("bad"):
            raise kopf.AdmissionError("this is bad")

    path = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/auto.kopf.dev"

    def configured():
        try:
            kinds = ("mutating", "validating")
            found = [kopf_cluster.request("GET", path.format(kind)) for kind in kinds]
        except RequestError:
            return False
        return all(it.get("webhooks") for it in found)

    loop = asyncio.get_running_loop()
    async with kopf_operator():
        await eventually(configured)
        created = await loop.run_in_executor(
            None, lambda: examples.create("good", spec={"good": True})
        )
        assert created["spec"] == {"good": True, "mutated": True}
        with pytest.raises(RequestError, match="this is bad"):
            await loop.run_in_executor(None, lambda: examples.create("bad", spec={"bad": True}))


async def test_webhooks_are_for_all_namespaces_as_in_kopf(kopf_operator, kopf_cluster):
    async def server(fn):
        yield {"service": {"name": "hooks", "namespace": "operators", "path": "/"}}
        await asyncio.Event().wait()

    @kopf.on.startup(id="start")
    async def start(settings, **_):
        settings.admission.server = server
        settings.admission.managed = "auto.kopf.dev"

    @kopf.on.mutate("pods", id="mutate")
    async def mutate(**_):
        pass

    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

    def configured():
        items = kopf_cluster.request("GET", path)["items"]
        return [webhook for item in items for webhook in item.get("webhooks") or []]

    async with kopf_operator():
        webhooks = await eventually(configured)
    assert [webhook["namespaceSelector"] for webhook in webhooks] == [{}]


async def test_admission_handlers_without_a_server_end_the_operator(examples, kopf_operator):
    @kopf.on.validate(*EX, id="validate")
    async def validate(**_):
        pass

    with pytest.raises(Exception, match="no admission server/tunnel is configured"):
        async with kopf_operator():
            await asyncio.sleep(5)
