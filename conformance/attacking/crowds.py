"""Thousands of watches and connections, and clients that come and go."""

import pathlib
import threading
import time

from .frames import Connection

MAPS = "/api/v1/namespaces/crowd/configmaps"
CONNECTIONS = 1500
# Of one HTTP/2 connection each; the server allows 1000.
SHARED, STREAMS = 5, 800
WRITES = 20
DELIVERY_SECONDS_MAX = 180
CHURN_SECONDS = 60
CHURNERS = 4
GROWTH_MB_MAX = 400
LEFT_MB_MAX = 100
LEFT_FILES_MAX = 20


def run(server, results):
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "crowd"}})
    # The first answers fill caches, which are no leak.
    server.request("GET", MAPS)
    watchers(server, results)
    churn(server, results)
    server.request("DELETE", "/api/v1/namespaces/crowd")


def files(server):
    return sum(1 for _ in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir())


def settled(server, before):
    """The open files once they are as few as before, or after ten seconds."""
    deadline = time.monotonic() + 10
    while files(server) > before and time.monotonic() < deadline:
        time.sleep(0.1)
    return files(server)


def watchers(server, results):
    """Watches on their own connections, and many on few connections; each must get every event."""
    open_before, memory_before = files(server), server.rss()
    path = f"{MAPS}?watch=1&resourceVersion=0"
    line = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
    alone, refused = [], 0
    for _ in range(CONNECTIONS):
        try:
            connection = server.raw(30)
            connection.sendall(line)
            alone.append(connection)
        except OSError:
            refused += 1
    shared = [Connection(server) for _ in range(SHARED)]
    for connection in shared:
        connection.send(*(connection.request(2 * number + 1, path) for number in range(STREAMS)))
    for connection in alone:
        read_until(connection, b"\r\n\r\n", time.monotonic() + DELIVERY_SECONDS_MAX)
    total = len(alone) + SHARED * STREAMS
    grown = server.rss() - memory_before
    since = time.monotonic()
    for index in range(WRITES):
        server.request("POST", MAPS, {"metadata": {"name": f"seen{index}"}})
    written = time.monotonic() - since
    last = f'"seen{WRITES - 1}"'.encode()
    complete = sum(count(read_until(connection, last, since + DELIVERY_SECONDS_MAX)) == WRITES for connection in alone)
    while time.monotonic() < since + DELIVERY_SECONDS_MAX and streams(shared) < SHARED * STREAMS:
        time.sleep(0.1)
    complete += streams(shared)
    took = time.monotonic() - since
    results.add("crowds", f"{total} watches: each gets {WRITES} events", f"all within {DELIVERY_SECONDS_MAX} s",
                f"{complete} complete, {refused} refused; written in {written:.1f} s, delivered in {took:.1f} s", complete == total and not refused)
    status, _ = server.request("GET", "/healthz")
    results.add("crowds", f"{total} watches: memory", f"< {GROWTH_MB_MAX} MB more", f"{grown} MB more, /healthz {status}", grown < GROWTH_MB_MAX and status == 200)
    for connection in alone + shared:
        connection.close()
    left = settled(server, open_before) - open_before
    results.add("crowds", f"{total} watches, after they have gone", f"< {LEFT_FILES_MAX} files more", f"{left} files more", left < LEFT_FILES_MAX)


def read_until(connection, mark, deadline):
    text = b""
    try:
        while mark not in text and (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            part = connection.recv(1 << 16)
            if not part:
                break
            text += part
    except OSError:
        pass
    return text


def count(text):
    """How many of the events have arrived."""
    return sum(f'"name":"seen{index}"'.encode() in text for index in range(WRITES))


def streams(connections):
    """How many watches of the shared connections have every event."""
    return sum(count(text) == WRITES for connection in connections for text in list(connection.data.values()))


def churn(server, results):
    """Clients that connect, watch, and leave without a word, for a minute."""
    open_before, memory_before = files(server), server.rss()
    stop, rounds, failures = time.monotonic() + CHURN_SECONDS, [0] * CHURNERS, [0] * CHURNERS

    def visit(who):
        path = f"{MAPS}?watch=1&resourceVersion=0"
        line = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
        while time.monotonic() < stop:
            try:
                with server.raw(10) as connection:
                    connection.sendall(line)
                    connection.recv(100)
                shared = Connection(server)
                shared.send(*(shared.request(2 * number + 1, path) for number in range(100)))
                shared.close()
            except OSError:
                failures[who] += 1
            rounds[who] += 1

    threads = [threading.Thread(target=visit, args=(who,)) for who in range(CHURNERS)]
    for thread in threads:
        thread.start()
    longest = 0.0
    while time.monotonic() < stop:
        since = time.monotonic()
        server.request("GET", "/healthz")
        longest = max(longest, time.monotonic() - since)
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    left, grown = settled(server, open_before) - open_before, server.rss() - memory_before
    held = left < LEFT_FILES_MAX and grown < LEFT_MB_MAX and not sum(failures) and longest < 5
    results.add("crowds", f"{CHURN_SECONDS} s of clients that come and go", f"all served, < {LEFT_FILES_MAX} files and < {LEFT_MB_MAX} MB more",
                f"{sum(rounds)} times 101 watches, {sum(failures)} failed, {left} files and {grown} MB more, others waited {longest:.1f} s", held)
