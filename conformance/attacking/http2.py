"""HTTP/2 connections that make the server work or remember without reading what it says."""

import struct
import threading
import time

from .frames import (
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, LARGEST_WINDOW, PING, PRIORITY, REFUSED_STREAM, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, Connection, frame, integer,
)

MAPS = "/api/v1/namespaces/default/configmaps"
FLOOD = 50_000
# In one write, so that the client is not what slows the flood.
BATCH = 500
STREAMS = 5000
GROWTH_MB_MAX = 100
CPU_SECONDS_MAX = 30
WAIT_SECONDS_MAX = 5
SEND_SECONDS_MAX = 60
# An answer may remain unread for 120 s.
UNREAD_SECONDS_MAX = 150


def run(server, results):
    resets(server, results)
    streams(server, results)
    continuations(server, results)
    compression(server, results)
    floods(server, results)
    windows(server, results)


class Load:
    """What other clients and the machine notice while an attack runs."""

    def __init__(self, server):
        self.server, self.longest, self.stop = server, 0.0, threading.Event()

    def __enter__(self):
        self.cpu, self.rss = self.server.cpu(), self.server.rss()
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()
        return self

    def _ask(self):
        while not self.stop.is_set():
            since = time.monotonic()
            status, _ = self.server.request("GET", "/healthz")
            waited = time.monotonic() - since
            self.longest = max(self.longest, waited if status == 200 else 60.0)
            time.sleep(0.05)

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        self.spent, self.grown = self.server.cpu() - self.cpu, self.server.rss() - self.rss

    def held(self):
        return self.longest < WAIT_SECONDS_MAX and self.grown < GROWTH_MB_MAX and self.spent < CPU_SECONDS_MAX

    def text(self):
        return f"{self.spent:.1f} s of CPU, {self.grown} MB more, others waited {self.longest:.1f} s"


EXPECTED = f"< {CPU_SECONDS_MAX} s of CPU, < {GROWTH_MB_MAX} MB more, others wait < {WAIT_SECONDS_MAX} s"


def batches(connection, count, make):
    """Sends what `make` returns for each number, until the server ends the connection; the number of those sent."""
    deadline = time.monotonic() + SEND_SECONDS_MAX
    for start in range(0, count, BATCH):
        texts = [make(number) for number in range(start, min(start + BATCH, count))]
        if time.monotonic() > deadline or not connection.send(*texts):
            return start
    return count


def ending(connection):
    connection.closed.wait(1)
    told = "" if connection.goaway is None else f", GOAWAY {connection.goaway}"
    return ("closed" if connection.closed.is_set() else "open") + told


def resets(server, results):
    """Requests that are reset at once: the server has already begun, and the limit of streams does not count them."""
    connection = Connection(server)
    cancel = struct.pack(">I", CANCEL)
    with Load(server) as load:
        pair = lambda number: connection.request(2 * number + 1, MAPS) + frame(RST_STREAM, 0, 2 * number + 1, cancel)
        sent = batches(connection, FLOOD, pair)
        end = ending(connection)
    held = load.held() and end.startswith("closed")
    results.add("HTTP/2", f"{FLOOD} requests, each reset at once", f"closed; {EXPECTED}", f"{end} after {sent}; {load.text()}", held)
    connection.close()


def streams(server, results):
    """Requests whose bodies do not come."""
    connection = Connection(server)
    with Load(server) as load:
        batches(connection, STREAMS, lambda number: connection.request(2 * number + 1, MAPS, "POST", ends=False))
        time.sleep(2)
        refused = connection.errors.get(REFUSED_STREAM, 0)
        end = ending(connection)
    limited = refused >= STREAMS // 2 or end.startswith("closed")
    results.add("HTTP/2", f"{STREAMS} open requests on one connection", f"most refused, or closed; {EXPECTED}",
                f"{refused} refused, {end}; {load.text()}", limited and load.held())
    connection.close()


def continuations(server, results):
    """Headers that never end."""
    for what, piece in {"of 16 kB": b"\0\x01x\x7f\xe0\x7e" + b"a" * 16351, "without content": b""}.items():
        connection = Connection(server)
        with Load(server) as load:
            connection.send(frame(HEADERS, END_STREAM, 1, connection.block("/api")))
            sent = batches(connection, FLOOD // 10, lambda _: frame(CONTINUATION, 0, 1, piece))
            end = ending(connection)
        results.add("HTTP/2", f"{FLOOD // 10} CONTINUATION frames {what}", f"closed; {EXPECTED}", f"{end} after {sent}; {load.text()}",
                    end.startswith("closed") and load.held())
        connection.close()


def compression(server, results):
    """A header of 4000 bytes in the table, and requests that repeat it thousands of times by its number."""
    connection = Connection(server)
    entry = b"\x40" + integer(1, 7) + b"x" + integer(4000, 7) + b"a" * 4000
    bomb = connection.block("/api") + entry + b"\xbe" * 10_000
    with Load(server) as load:
        connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, bomb))
        for number in range(1, 200):
            connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, connection.block("/api") + b"\xbe" * 16_000))
        end = ending(connection)
    results.add("HTTP/2", "200 requests of 64 MB each when decompressed", EXPECTED, f"{end}; {load.text()}", load.held())
    connection.close()


def floods(server, results):
    """Frames that cost nothing to send, and that the server answers or counts."""
    one = struct.pack(">I", 1)
    cases = {
        "PING": lambda _: frame(PING, 0, 0, b"12345678"),
        "SETTINGS": lambda _: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)),
        "PRIORITY": lambda number: frame(PRIORITY, 0, 2 * number + 1, one + b"\x10"),
        "empty DATA": lambda _: frame(DATA, 0, 1),
        "WINDOW_UPDATE": lambda _: frame(WINDOW_UPDATE, 0, 1, one),
    }
    for what, make in cases.items():
        for reads in (True, False):
            connection = Connection(server, reads=reads)
            with Load(server) as load:
                connection.socket.settimeout(10)
                connection.send(connection.request(1, MAPS, "POST", ends=False))
                sent = batches(connection, FLOOD, make)
                end = ending(connection)
            how = "" if reads else ", answers not read"
            results.add("HTTP/2", f"{FLOOD} {what} frames{how}", EXPECTED, f"{end} after {sent}; {load.text()}", load.held())
            connection.close()


def windows(server, results):
    """Large answers on streams that may not send, or only one byte at a time."""
    for index in range(40):
        server.request("POST", MAPS, {"metadata": {"name": f"wide{index}"}, "data": {"a": "x" * 100_000}})
    for what, window in {"no byte": 0, "one byte at a time": 1}.items():
        connections = [Connection(server, window=window, reads=False) for _ in range(10)]
        with Load(server) as load:
            for connection in connections:
                connection.send(*(connection.request(2 * number + 1, MAPS) for number in range(30)))
            time.sleep(5)
        results.add("HTTP/2", f"300 lists of 4 MB of which {what} may be sent", EXPECTED, load.text(), load.held())
        if window == 0:
            since = time.monotonic()
            ended = sum(closes(connection, since + UNREAD_SECONDS_MAX) for connection in connections)
            results.add("HTTP/2", "what becomes of these connections", f"closed within {UNREAD_SECONDS_MAX} s",
                        f"{ended} of {len(connections)} closed after {time.monotonic() - since:.0f} s", ended == len(connections))
        for connection in connections:
            connection.close()
    for what, size in {"the largest": LARGEST_WINDOW, "zero": 0}.items():
        connection = Connection(server)
        connection.send(connection.request(1, MAPS), frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", size)))
        end = ending(connection)
        results.add("HTTP/2", f"a window that grows by {what}", "closed", end, end.startswith("closed"))
        connection.close()
    for index in range(40):
        server.request("DELETE", f"{MAPS}/wide{index}")


def closes(connection, deadline):
    """Whether the server closes the connection; what it has sent before is read and dropped."""
    try:
        while (left := deadline - time.monotonic()) > 0:
            connection.socket.settimeout(left)
            if not connection.socket.recv(1 << 16):
                return True
    except TimeoutError:
        return False
    except OSError:
        return True
    return False
