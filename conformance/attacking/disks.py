"""Kills, damaged files and full disks."""

import json
import pathlib
import shutil
import subprocess
import threading
import time

from .server import Server

MAPS = "/api/v1/namespaces/default/configmaps"
ROUNDS = 5
START_SECONDS_MAX = 10
OBJECTS = 300
CONTENT = {"a": "b" * 5000}


def run(kopf, folder, results):
    kills(kopf, pathlib.Path(folder, "kills"), results)
    damage(kopf, pathlib.Path(folder, "damage"), results)
    full(kopf, pathlib.Path(folder, "full"), results)


def versions(server):
    _, listed = server.request("GET", MAPS)
    return {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in listed["items"]}


def kills(kopf, data, results):
    """Kills the server under writers and watchers, and resumes the watch."""
    lost = reused = phantoms = missed = 0
    for number in range(ROUNDS):
        acknowledged, watched, last = {}, {}, [0]
        with Server(kopf, data.parent, f"--data-dir={data}") as server:
            last[0] = max(versions(server).values(), default=0)
            threads = [threading.Thread(target=write, args=(server, f"r{number}w{writer}", acknowledged)) for writer in range(3)]
            threads.append(threading.Thread(target=watch, args=(server, watched, last)))
            for thread in threads:
                thread.start()
            time.sleep(0.7)
            server.process.kill()
            for thread in threads:
                thread.join()
        with Server(kopf, data.parent, f"--data-dir={data}") as server:
            stored = versions(server)
            lost += sum(name not in stored for name in acknowledged)
            phantoms += sum(name not in stored for name in watched)
            new = {}
            for index in range(10):
                _, created = server.request("POST", MAPS, {"metadata": {"name": f"r{number}new{index}"}})
                new[created["metadata"]["name"]] = int(created["metadata"]["resourceVersion"])
            reused += len(set(new.values()) & (set(watched.values()) | set(acknowledged.values())))
            status, text = server.request("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={last[0]}")
            # Several events are no single JSON document, so `request` returns them as text.
            told = text["message"] if "message" in text else json.dumps(text)
            is_expired = text.get("object", {}).get("code") == 410
            missed += 0 if is_expired else sum(f'"{name}"' not in told for name in new)
    for what, count in {"acknowledged writes lost": lost, "events of writes that are gone": phantoms, "versions used twice": reused,
                        "events that the resumed watch misses": missed}.items():
        results.add("kill -9", f"{ROUNDS} rounds: {what}", "0", count, count == 0)


def write(server, prefix, acknowledged):
    for index in range(10_000):
        try:
            status, created = server.request("POST", MAPS, {"metadata": {"name": f"{prefix}-{index}"}}, timeout=5)
        except OSError:
            return
        if status != 201:
            return
        acknowledged[created["metadata"]["name"]] = int(created["metadata"]["resourceVersion"])


def watch(server, watched, last):
    line = f"GET {MAPS}?watch=1&resourceVersion={last[0]} HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    text = b""
    try:
        with server.raw(5) as connection:
            connection.sendall(line.encode())
            while part := connection.recv(65536):
                text += part
    except OSError:
        pass
    for row in text.split(b"\n"):
        start = row.find(b'{"type"')
        try:
            event = json.loads(row[start:]) if start >= 0 else {}
        except ValueError:
            continue
        if event.get("type") == "ADDED":
            metadata = event["object"]["metadata"]
            watched[metadata["name"]] = int(metadata["resourceVersion"])
            last[0] = max(last[0], watched[metadata["name"]])


def ends_with_error(kopf, data):
    command = [kopf, "cluster", "--port=0", "--no-nodes", f"--data-dir={data}", f"--kubeconfig={data.parent / 'unused'}"]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=START_SECONDS_MAX, text=True)
    except subprocess.TimeoutExpired:
        return "started", False
    return ended.stderr.strip().splitlines()[0] if ended.stderr.strip() else f"exit {ended.returncode}", ended.returncode != 0


def damage(kopf, data, results):
    with Server(kopf, data.parent, f"--data-dir={data}") as server:
        for index in range(OBJECTS):
            server.request("POST", MAPS, {"metadata": {"name": f"kept{index}"}, "data": CONTENT})
        text, held = ends_with_error(kopf, data)
        results.add("files", "a second process in the same folder", "an error", text, held)
    store = data / "world.redb"
    good = store.read_bytes()
    changes = {"empty": b"", "cut in half": good[: len(good) // 2], "zeros at the start": bytes(4096) + good[4096:]}
    for what, content in changes.items():
        store.write_bytes(content)
        text, held = ends_with_error(kopf, data)
        results.add("files", f"the store file is {what}", "an error, no new world", text, held)
    for tenth in range(1, 10, 2):
        place = len(good) * tenth // 10
        store.write_bytes(good[:place] + bytes(255 - byte for byte in good[place : place + 200]) + good[place + 200 :])
        text, held = ends_with_error(kopf, data)
        if not held:
            # Bytes that no page uses may change.
            with Server(kopf, data.parent, f"--data-dir={data}") as server:
                _, listed = server.request("GET", MAPS)
            intact = sum(item.get("data") == CONTENT for item in listed.get("items", []))
            text, held = f"started with {intact} of {OBJECTS} objects", intact == OBJECTS
        results.add("files", f"200 bytes flipped at {tenth}0 % of the store file", "an error, or all data", text, held)
    store.unlink()
    text, held = ends_with_error(kopf, data)
    results.add("files", "the store file is gone", "an error, no new world", text, held)
    private = all(path.stat().st_mode & 0o077 == 0 for path in data.iterdir())
    results.add("files", "modes of the files", "only for their owner", "private" if private else "readable by others", private)


def full(kopf, data, results):
    data.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(data)], capture_output=True)
    if mounted.returncode != 0:
        results.add("full disk", "tmpfs of 8 MB", "refused writes stay unseen", "could not mount a tmpfs", None)
        return
    try:
        fill(kopf, data, results)
    finally:
        for _ in range(50):
            if subprocess.run(["umount", str(data)], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)


def fill(kopf, data, results):
    names, refused = [], ""
    with Server(kopf, data.parent, f"--data-dir={data / 'd'}") as server:
        for index in range(2000):
            status, answer = server.request("POST", MAPS, {"metadata": {"name": f"f{index}"}, "data": {"a": "x" * 20_000}})
            if status != 201:
                refused = f"f{index}"
                break
            names.append(f"f{index}")
        results.add("full disk", "a write that does not fit", "5xx", f"{status} after {len(names)}: {answer.get('message', '')}", status >= 500)
        seen = set(versions(server))
        results.add("full disk", "the refused write is not visible", "absent", refused in seen, refused not in seen)
        results.add("full disk", "acknowledged writes", "all there", len(seen & set(names)), set(names) <= seen)
        status, _ = server.request("GET", "/readyz")
        results.add("full disk", "/readyz", "500", status, status >= 500)
        status, _ = server.request("DELETE", f"{MAPS}/f0")
        gone = status == 200
        subprocess.run(["mount", "-o", "remount,size=64m", str(data)], check=True, capture_output=True)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            status, _ = server.request("POST", MAPS, {"metadata": {"name": "after"}})
            if status == 201:
                break
            time.sleep(0.5)
        results.add("full disk", "a write once there is space", "201 without a restart", status, status == 201)
    with Server(kopf, data.parent, f"--data-dir={data / 'd'}") as server:
        stored = set(versions(server))
        expected = set(names) - ({"f0"} if gone else set())
        results.add("full disk", "acknowledged writes after a restart", "all there", f"{len(stored & expected)} of {len(expected)}", expected <= stored)
        if gone:
            results.add("full disk", "a deleted object after a restart", "gone", "f0" in stored, "f0" not in stored)
        results.add("full disk", "the refused write after a restart", "absent", refused in stored, refused not in stored)
    shutil.rmtree(data / "d", ignore_errors=True)
