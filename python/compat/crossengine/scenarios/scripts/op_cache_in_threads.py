"""Threads everywhere: synchronous daemons and timers, pools, thread-local clients, HTTP by urllib."""

import concurrent.futures
import http.server
import json
import threading
import time
import urllib.request

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
RACES = True
STEPS = [
    ("create", "site", {"spec": {"urls": ["/a", "/b", "/missing"], "probe": True}}),
    ("sleep", "1"),
    ("patch", "site", {"spec": {"urls": ["/a"]}}),
    ("patch", "site", {"spec": {"probe": False}}),
    ("delete", "site"),
]
local = threading.local()
pool = concurrent.futures.ThreadPoolExecutor(max_workers=3, thread_name_prefix="fetch")


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code = 404 if self.path == "/missing" else 200
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps({"path": self.path}).encode())

    def log_message(self, *_):
        pass


@kopf.on.startup()
def start(memo: kopf.Memo, settings, **_):
    memo.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    memo.thread = threading.Thread(target=memo.server.serve_forever, daemon=True)
    memo.thread.start()
    settings.execution.executor = concurrent.futures.ThreadPoolExecutor(10)


@kopf.on.cleanup()
def stop(memo, **_):
    memo.server.shutdown()
    memo.server.server_close()
    memo.thread.join(5)
    pool.shutdown()
    note("stopped", memo.thread.is_alive())


def fetch(memo, path):
    if not hasattr(local, "count"):
        local.count = 0
    local.count += 1
    with urllib.request.urlopen(f"http://127.0.0.1:{memo.server.server_port}{path}") as response:
        return json.load(response)["path"]


@kopf.on.create(*EX, backoff=0.3, retries=2)
@kopf.on.update(*EX, backoff=0.3, field="spec.urls")
def crawl(spec, memo, patch, retry, **_):
    futures = {path: pool.submit(fetch, memo, path) for path in spec["urls"]}
    found = {}
    for path, future in futures.items():
        try:
            found[path] = future.result(timeout=5)
        except urllib.error.HTTPError as e:
            found[path] = f"error {e.code}"
            if retry == 0:
                raise kopf.TemporaryError(f"{path} has failed", delay=0.2) from e
    note("crawl", retry, found, threading.current_thread() is threading.main_thread())
    patch["status"] = {"found": len(found)}


@kopf.daemon(*EX, when=lambda spec, **_: spec.get("probe"), cancellation_backoff=0.5)
def probe(spec, stopped: kopf.DaemonStopped, memo, name, patch, **_):
    rounds = 0
    while not stopped.wait(0.1):
        rounds += 1
        if rounds == 2:
            note("probe", name, fetch(memo, "/probe"), list(spec["urls"]))
            patch.status["probed"] = True
            return


@kopf.timer(*EX, interval=3600, initial_delay=0.3)
def tick(memo, name, spec, **_):
    memo.setdefault("ticks", []).append(time.monotonic())
    note("tick", name, len(memo.ticks), len(spec["urls"]))


@kopf.on.delete(*EX)
def delete(memo, name, **_):
    note("delete", name, len(memo.ticks))
