"""A custom webhook server: an async generator with the client's configuration."""

import asyncio
import base64
import json
import os
import pathlib
import ssl

import aiohttp.web
from crosslib import note

import kopf

# A denial is not a failure here.
DIFFERS = ["lines"]
STEPS = [
    ("create", "one", {"spec": {"field": "bad"}}),
    ("create", "two", {"spec": {"field": "good"}}),
    ("patch", "two", {"spec": {"field": "bad"}}),
]


async def server(fn):
    folder = pathlib.Path(os.environ["CROSS_CERTIFICATES"])

    async def serve(request):
        review = await request.json()
        note("path", request.path, review["request"]["operation"])
        response = await fn(
            review, webhook=request.path.strip("/"), headers=dict(request.headers), sslpeer={}
        )
        return aiohttp.web.Response(text=json.dumps(response), content_type="application/json")

    app = aiohttp.web.Application()
    app.add_routes([aiohttp.web.post("/{id:.*}", serve)])
    runner = aiohttp.web.AppRunner(app, handle_signals=False)
    await runner.setup()
    context = ssl.create_default_context(purpose=ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "pkey.pem")
    site = aiohttp.web.TCPSite(runner, "localhost", 0, ssl_context=context)
    await site.start()
    try:
        port = site._server.sockets[0].getsockname()[1]
        bundle = base64.b64encode((folder / "cert.pem").read_bytes()).decode()
        yield {"url": f"https://localhost:{port}", "caBundle": bundle}
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


@kopf.on.startup()
def configure(settings, **_):
    settings.admission.server = server
    settings.admission.managed = "auto.kopf.dev"


@kopf.on.validate("kopfexamples", id="check")
def check(spec, warnings, operation, dryrun, userinfo, headers, sslpeer, **_):
    note("check", operation, dryrun, sorted(userinfo), "Host" in headers, sslpeer)
    warnings.append("be careful")
    if spec.get("field") == "bad":
        raise kopf.AdmissionError("no bad fields", code=422)


@kopf.on.mutate("kopfexamples", operations=["CREATE"])
def default(spec, patch, **_):
    patch.spec["default"] = spec.get("default", "yes")


@kopf.on.create("kopfexamples")
def create(spec, **_):
    note("create", dict(spec))
