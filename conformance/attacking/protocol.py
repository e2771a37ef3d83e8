"""URLs, HTTP, and clients that send slowly or not at all."""

import select
import ssl
import socket
import time

CONNECTIONS = 10
# The deadlines of the server are 30 s for handshakes, 60 s for bodies and 90 s for everything else.
SLOW_SECONDS_MAX = 115


def run(server, results):
    urls(server, results)
    methods(server, results)
    smuggling(server, results)
    large(server, results)
    slow(server, results)


def urls(server, results):
    paths = [
        "/api/v1/namespaces/default/../kube-system/secrets", "/api/v1/namespaces/default/%2e%2e/kube-system/secrets",
        "/api/v1/namespaces/default%2fsecrets", "//api/v1/secrets", "/api//v1/secrets", "/api/v1/secrets;x", "/api/v1/secrets%00",
        "/api/v1/secrets%3fwatch=1", "/api/v1/%ff", "/api/v1/namespaces/*/secrets", "/API/V1/secrets", "/api/v1/%73ecrets",
        "/api/v1/secrets/", "/./api/v1/secrets", "/api/v1/proxy/nodes/n", "/healthz/../api/v1/secrets", "/version/..%2fapi/v1/secrets",
        "/openapi/../api/v1/secrets", "/api/v1/namespaces/default/secrets%20", "/\\api\\v1\\secrets", "/apis/../api/v1/secrets",
        "/api/v1/namespaces/default/secrets/..", "/healthz%2f..%2fapi/v1/secrets",
    ]
    for path in paths:
        line = server.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        held = line.startswith("closed") or line.split(" ")[1:2] and line.split(" ")[1][0] in "34"
        results.add("urls", f"without a token: `{path}`", "3xx, 4xx or closed", line, bool(held))


def methods(server, results):
    for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE"):
        status, _ = server.request(method, "/version")
        results.add("methods", f"{method} /version", "4xx", status, 400 <= status < 500)
    maps = "/api/v1/namespaces/default/configmaps"
    server.request("POST", maps, {"metadata": {"name": "kept"}})
    for method in ("TRACE", "OPTIONS", "SEARCH"):
        status, _ = server.request(method, f"{maps}/kept")
        kept, _ = server.request("GET", f"{maps}/kept")
        results.add("methods", f"{method} on an object", "refused, the object stays", f"{status}, then {kept}", kept == 200 and status >= 400)
    line = server.send(b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n")
    results.add("methods", "CONNECT", "4xx or closed", line, line.startswith("closed") or " 4" in line)
    plain = socket.create_connection((server.host, server.port), timeout=10)
    with plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            answer = plain.recv(100)
        except ConnectionError:
            answer = b""
    results.add("methods", "plain HTTP on the TLS port", "no 200", answer[:20], b" 200 " not in answer)


def smuggling(server, results):
    head = f"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
    cases = {
        "length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two lengths": "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", "xchunked": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "length +4": "Content-Length: +4\r\n\r\n{}  ", "length -1": "Content-Length: -1\r\n\r\n{}", "length 0x4": "Content-Length: 0x4\r\n\r\n{}  ",
        "folded line": "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", "space before colon": "Content-Length : 2\r\n\r\n{}",
        "NUL": "X: a\0b\r\nContent-Length: 2\r\n\r\n{}", "chunk overflow": "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "chunk size -1": "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n",
    }
    for what, rest in cases.items():
        line = server.send((head + rest).encode())
        results.add("smuggling", what, "4xx or closed", line, line.startswith("closed") or " 4" in line)


def large(server, results):
    before = server.rss()
    get = f"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
    cases = {
        "1 MB header": get + "X: " + "a" * 1_000_000 + "\r\n\r\n", "500 headers": get + "".join(f"X{i}: a\r\n" for i in range(500)) + "\r\n",
        "200 kB URL": f"GET /api?{'a' * 200_000} HTTP/1.1\r\nHost: x\r\n\r\n",
    }
    for what, text in cases.items():
        line = server.send(text.encode())
        results.add("sizes", what, "4xx or closed", line, line.startswith("closed") or " 4" in line)
    status, answer = server.request("POST", "/api/v1/namespaces/default/configmaps", b"{" + b" " * 20_000_000 + b"}")
    results.add("sizes", "20 MB body", "413 or closed", f"{status} {answer.get('message', '')[:40]}", status in (0, 413))
    grown = server.rss() - before
    results.add("sizes", "memory after these", "< 100 MB more", f"{grown} MB", grown < 100)


def slow(server, results):
    """Opens connections of every sort that send no more, and waits for the server to close them."""
    head = f"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
    sorts = {"no handshake": None, "silence after the handshake": b"", "half a head": b"GET /healthz HTTP/1.1\r\nX: ",
             "half a body": (head + "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{").encode(),
             "half a body without a token": b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"}
    opened = {}
    for what, text in sorts.items():
        for _ in range(CONNECTIONS):
            if text is None:
                connection = socket.create_connection((server.host, server.port), timeout=10)
            else:
                connection = server.raw()
                connection.sendall(text)
            connection.setblocking(False)
            opened[connection] = what
    since, closed = time.monotonic(), {what: [] for what in sorts}
    while opened and time.monotonic() - since < SLOW_SECONDS_MAX:
        for connection in select.select(list(opened), [], [], 1)[0]:
            try:
                ended = connection.recv(65536) == b""
            except (ssl.SSLWantReadError, BlockingIOError):
                continue
            except OSError:
                ended = True
            if ended:
                closed[opened.pop(connection)].append(time.monotonic() - since)
                connection.close()
    for what, times in closed.items():
        last = f", the last after {max(times):.0f} s" if times else ""
        results.add("slow clients", f"{CONNECTIONS} x {what}", "closed", f"{len(times)} closed{last}", len(times) == CONNECTIONS)
    for connection in opened:
        connection.close()
