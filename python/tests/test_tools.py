"""The tools around operators: ``kopf dev``, ``explain``, ``manifests``, metrics, traces."""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kopf._engine.cluster import EmbeddedCluster

LIMIT = 60.0
SCRIPT = """
    import kopf

    @kopf.on.create("example.com", "v1", "things", id="create")
    def create(name, **_):
        return "first"
"""
THING = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: one}\nspec: {}\n"


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"it never came: {condition}")


class Command:
    """A command of ``kopf`` that runs until it is stopped."""

    def __init__(self, directory: pathlib.Path, *args: str, **environment: str) -> None:
        self._output = directory / "output.txt"
        with open(self._output, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kopf", *args],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                cwd=directory,
            )

    def text(self) -> str:
        return self._output.read_text()

    def says(self, text: str) -> None:
        def is_said() -> bool:
            assert self.process.poll() is None, self.text()
            return text in self.text()

        until(is_said)

    def kubeconfig(self) -> str:
        found = until(lambda: re.search(r"export KUBECONFIG=(\S+)", self.text()))
        return str(found[1])

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=LIMIT)


@pytest.fixture
def command(tmp_path: pathlib.Path) -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(*args: str, **environment: str) -> Command:
        started.append(Command(tmp_path, *args, **environment))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def write(path: pathlib.Path, text: str) -> str:
    path.write_text(textwrap.dedent(text))
    return str(path)


def explain(kubeconfig: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kopf", "explain", *args],
        env={**os.environ, "KUBECONFIG": kubeconfig},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dev_reloads_scripts_and_explain_finds_the_operator(
    tmp_path: pathlib.Path, command: Callable[..., Command]
) -> None:
    script = write(tmp_path / "handlers.py", SCRIPT)
    dev = command("dev", "--load", write(tmp_path / "thing.yaml", THING), script)
    dev.says("[default/one] Creation is processed")
    text = explain(dev.kubeconfig(), "thing/one")
    assert "Thing default/one" in text and "create, attempt 1" in text and "succeeded" in text

    (tmp_path / "handlers.py").write_text("import kopf\ndef broken(:\n")
    dev.says("The operator does not start: waiting for the next change.")
    assert "SyntaxError" in dev.text()
    write(
        tmp_path / "handlers.py",
        SCRIPT
        + """
    @kopf.on.resume("example.com", "v1", "things")
    @kopf.on.create("example.com", "v1", "others")
    def again(name, logger, **_):
        logger.info(f"seen again: {name}")
    """,
    )
    dev.says("seen again: one")
    assert dev.stop() == 0, dev.text()


def test_explain_tells_of_failures_in_embedded_runs(
    tmp_path: pathlib.Path, command: Callable[..., Command]
) -> None:
    script = write(
        tmp_path / "handlers.py",
        """
        import kopf

        @kopf.on.create("example.com", "v1", "things", id="create")
        def create(**_):
            raise kopf.TemporaryError("the bank is closed", delay=3600)
        """,
    )
    run = command("run", "--embedded", "--load", write(tmp_path / "t.yaml", THING), script)
    run.says("the bank is closed")
    kubeconfig = run.kubeconfig()
    text = until(lambda: (it := explain(kubeconfig, "thing/one")) and "closed" in it and it)
    assert "create" in text and "the bank is closed" in text
    assert run.stop() == 0


@pytest.mark.parametrize("mode", [("dev",), ("run", "--embedded")], ids=["dev", "run"])
def test_the_web_ui_shows_the_operator(
    tmp_path: pathlib.Path, command: Callable[..., Command], mode: tuple[str, ...]
) -> None:
    thing = write(tmp_path / "thing.yaml", THING)
    run = command(*mode, "--load", thing, write(tmp_path / "handlers.py", SCRIPT))
    run.says("[default/one] Creation is processed")
    found = re.search(r"The web UI is at (http://127\.0\.0\.1:\d+)/#token=(\w+)", run.text())
    assert found, run.text()
    url, token = found.groups()

    def asked(path: str) -> Any:
        request = urllib.request.Request(url + path, headers={"authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return json.load(answer)

    def listed() -> Any:
        try:
            return asked("/api/objects?resource=things.example.com&since=0")["rows"]
        except urllib.error.HTTPError as e:
            # The pages have watches of their own, which may begin later.
            assert e.code == 404
            assert "is not watched (yet)" in e.read().decode()
            return None

    until(lambda: (asked("/api/overview")["status"] or {}).get("ready"))
    rows = until(listed)
    assert [row["name"] for row in rows] == ["one"]
    with urllib.request.urlopen(url, timeout=LIMIT) as page:
        assert b"<title>Kopf</title>" in page.read()
    assert run.stop() == 0, run.text()


def test_metrics_and_probes_are_beside_the_liveness_endpoint(
    tmp_path: pathlib.Path, command: Callable[..., Command]
) -> None:
    script = write(tmp_path / "handlers.py", SCRIPT)
    thing = write(tmp_path / "thing.yaml", THING)
    run = command("run", "--embedded", "--load", thing, script)
    run.says("[default/one] Creation is processed")
    import yaml

    config = yaml.safe_load(pathlib.Path(run.kubeconfig()).read_text())
    url = config["clusters"][0]["cluster"]["extensions"][0]["extension"]["url"]
    with urllib.request.urlopen(f"{url}/metrics", timeout=LIMIT) as answer:
        metrics = answer.read().decode()
    assert re.search(r'kopf_\w+\{[^}]*handler="create"[^}]*\} 1', metrics), metrics
    for path in ("/healthz", "/readyz"):
        with urllib.request.urlopen(url + path, timeout=LIMIT) as answer:
            assert answer.status == 200
    assert run.stop() == 0


class Collector(http.server.BaseHTTPRequestHandler):
    received: list[bytes] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).received.append(self.path.encode() + b"\n" + body)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_traces_reach_a_collector(tmp_path: pathlib.Path, command: Callable[..., Command]) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run = command(
        *("run", "--embedded", "--load", write(tmp_path / "thing.yaml", THING)),
        write(tmp_path / "handlers.py", SCRIPT),
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{server.server_port}",
        OTEL_SERVICE_NAME="things-operator",
    )
    run.says("[default/one] Creation is processed")
    assert run.stop() == 0
    server.shutdown()
    received = b"".join(Collector.received)
    assert received.startswith(b"/v1/traces\n")
    for text in (b"things-operator", b"object", b"cause", b"handler", b"request", b"PATCH"):
        assert text in received


def manifests(tmp_path: pathlib.Path, text: str, *args: str) -> dict[str, list[Any]]:
    import yaml

    script = write(tmp_path / "handlers.py", text)
    out = tmp_path / "out"
    command = ["manifests", "--name", "demo", "--image", "demo:1", "-o", str(out), *args, script]
    done = subprocess.run(
        [sys.executable, "-m", "kopf", *command], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    return {
        file.name: [it for it in yaml.safe_load_all(file.read_text()) if it]
        for file in out.iterdir()
    }


TYPED = """
    import dataclasses
    import kopf

    @dataclasses.dataclass
    class SiteSpec:
        pages: int = 1

    @kopf.resource("example.com", "v1")
    class Site:
        spec: SiteSpec

    @kopf.desired(Site, children=[("v1", "configmaps")], needs=["get secrets"])
    def pages(spec: SiteSpec, **_):
        return []
"""


def rules(documents: list[Any]) -> list[tuple[str, str, tuple[str, ...]]]:
    found = [rule for document in documents for rule in document.get("rules", ())]
    return [
        (group, resource, tuple(sorted(rule["verbs"])))
        for rule in found
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]


def test_manifests_have_definitions_and_the_least_rights(tmp_path: pathlib.Path) -> None:
    files = manifests(tmp_path, TYPED)
    [definition] = files["crds.yaml"]
    assert definition["metadata"]["name"] == "sites.example.com"
    granted = rules(files["rbac.yaml"])
    children = ("create", "delete", "list", "patch", "watch")
    assert ("", "configmaps", children) in granted
    assert ("", "secrets", ("get",)) in granted
    assert ("example.com", "sites", ("list", "watch")) in granted
    assert ("example.com", "sites/status", ("patch",)) in granted


def test_operators_work_with_the_rights_of_their_manifests(
    tmp_path: pathlib.Path, command: Callable[..., Command]
) -> None:
    text = TYPED.replace("return []", "return [{'apiVersion': 'v1', 'kind': 'ConfigMap'}]")
    files = manifests(tmp_path, text)
    with EmbeddedCluster(rbac=True) as cluster:
        cluster.install(None, [*files["crds.yaml"], *files["rbac.yaml"]])
        account = "/api/v1/namespaces/default/serviceaccounts/demo/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = cluster.request("POST", account, asked)["status"]["token"]
        config = cluster.kubeconfig
        config["users"][0]["user"] = {"token": token}
        kubeconfig = tmp_path / "kubeconfig.yaml"
        kubeconfig.write_text(json.dumps(config))
        sites = "/apis/example.com/v1/namespaces/default/sites"
        site = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "home"}}
        cluster.request("POST", sites, {**site, "spec": {}})
        run = command("run", "-A", str(tmp_path / "handlers.py"), KUBECONFIG=str(kubeconfig))

        def is_ready() -> bool:
            assert run.process.poll() is None, run.text()
            status = cluster.request("GET", f"{sites}/home").get("status", {})
            conditions = {it["type"]: it["status"] for it in status.get("conditions", ())}
            return conditions.get("Ready") == "True"

        until(is_ready)
        assert run.stop() == 0
        assert "forbidden" not in run.text().lower(), run.text()


def test_new_projects_pass_their_tests(tmp_path: pathlib.Path) -> None:
    kopf = [sys.executable, "-m", "kopf"]
    made = subprocess.run([*kopf, "new", "demo"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "kopf._engine.fixtures"],
        cwd=tmp_path / "demo",
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
