"""Requests that cost the server time or memory."""

import threading
import time

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/default/configmaps"
CPU_SECONDS_MAX = 15
WAIT_SECONDS_MAX = 5


def run(server, results):
    bodies(server, results)
    patterns(server, results)
    expressions(server, results)
    policies(server, results)
    unread(server, results)


def measured(server, results, area, what, expected, attack):
    """Runs the attack while another client asks for `/healthz`."""
    longest, stop = [0.0], threading.Event()

    def ask():
        while not stop.is_set():
            since = time.monotonic()
            try:
                server.request("GET", "/healthz", timeout=60)
            except OSError:
                pass
            longest[0] = max(longest[0], time.monotonic() - since)
            time.sleep(0.05)

    asking = threading.Thread(target=ask)
    asking.start()
    before = server.cpu()
    try:
        status, answer = attack()
    except OSError as error:
        status, answer = 0, {"message": type(error).__name__}
    spent = server.cpu() - before
    stop.set()
    asking.join()
    text = f"{status}, {spent:.1f} s of CPU, others waited {longest[0]:.1f} s: {str(answer.get('message', ''))[:40]}"
    held = status in expected and spent < CPU_SECONDS_MAX and longest[0] < WAIT_SECONDS_MAX
    wanted = " or ".join(map(str, expected))
    results.add(area, what, f"{wanted}, others wait < {WAIT_SECONDS_MAX} s", text, held)


def definition(name, properties, **extra):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **extra}}}
    names = {"plural": name, "kind": name.capitalize()}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {"metadata": {"name": f"{name}.attack.dev"}, "spec": {"group": "attack.dev", "scope": "Namespaced", "names": names, "versions": [version]}}


def bodies(server, results):
    post = lambda body, **options: lambda: server.request("POST", MAPS, body, **options)
    yaml = {"kind": "application/yaml"}
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))
    cases = [
        ("1,400,000 nested lists", post("[" * 1_400_000), (400,)), ("300,000 nested objects", post('{"a":' * 300_000), (400,)),
        ("billion laughs in YAML", post(laughs, **yaml), (400, 413)), ("nested YAML", post("[" * 100_000, **yaml), (400,)),
        ("150,000 duplicate keys", post('{"metadata":{"name":"dup"},"data":{' + ",".join(['"a":"b"'] * 150_000) + "}}"), (201, 400, 413, 422)),
        ("90,000 unknown fields", post('{"metadata":{"name":"odd"},' + ",".join(f'"f{i}":1' for i in range(90_000)) + "}"), (201, 400)),
        ("300 kB of annotations", post({"metadata": {"name": "notes", "annotations": {f"a{i}": "x" * 10 for i in range(22_000)}}}), (422,)),
    ]
    for what, attack, expected in cases:
        measured(server, results, "bodies", what, expected, attack)
    server.request("POST", MAPS, {"metadata": {"name": "p"}, "data": {"a": "b" * 1000}})
    patch = lambda operations: lambda: server.request("PATCH", f"{MAPS}/p", operations, kind="application/json-patch+json")
    add = {"op": "add", "path": "/data/x", "value": "y"}
    measured(server, results, "patches", "10,001 operations", (413,), patch([add] * 10_001))
    doubling = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}]
    doubling += [{"op": "copy", "from": "/metadata", "path": "/metadata/annotations/b"}] * 40
    measured(server, results, "patches", "copies that double", (400, 413, 422), patch(doubling))
    selector = ",".join(f"a{i}" for i in range(5000))
    measured(server, results, "selectors", "5000 terms", (200, 400, 414, 431), lambda: server.request("GET", f"{MAPS}?labelSelector={selector}"))


def patterns(server, results):
    post = lambda body: lambda: server.request("POST", CRDS, body)
    many = {f"p{i}": {"type": "string", "pattern": "(\\pL{1,500}){1,10}" + str(i)} for i in range(300)}
    measured(server, results, "patterns", "300 x (\\pL{1,500}){1,10}", (201, 422), post(definition("manys", many)))
    measured(server, results, "patterns", "1,000,000 repetitions", (422,), post(definition("reps", {"p": {"type": "string", "pattern": "(a{1000}){1000}"}})))
    status, _ = server.request("POST", CRDS, definition("slows", {"p": {"type": "string", "pattern": "^(a+)+$"}}))
    body = {"apiVersion": "attack.dev/v1", "kind": "Slows", "metadata": {"name": "s"}, "spec": {"p": "a" * 1_000_000 + "!"}}
    path = "/apis/attack.dev/v1/namespaces/default/slows"
    wait_for(server, path)
    measured(server, results, "patterns", "^(a+)+$ on 1 MB", (422,), lambda: server.request("POST", path, body))


def wait_for(server, path):
    for _ in range(100):
        if server.request("GET", path)[0] == 200:
            return
        time.sleep(0.05)


def loop(levels, size, inner):
    items = ",".join(map(str, range(size)))
    for level in range(levels):
        inner = f"[{items}].all(a{level}, {inner})"
    return inner


def expressions(server, results):
    for levels in (3, 6, 7, 9, 12):
        rule = loop(levels, 10, "true")
        name = f"cels{levels}"
        body = definition(name, {"a": {"type": "string"}}, **{"x-kubernetes-validations": [{"rule": rule}]})
        measured(server, results, "CEL", f"a rule of 10^{levels} steps", (201, 422), lambda: server.request("POST", CRDS, body))
        path = f"/apis/attack.dev/v1/namespaces/default/{name}"
        if server.request("GET", f"{CRDS}/{name}.attack.dev")[0] == 200:
            wait_for(server, path)
            resource = {"apiVersion": "attack.dev/v1", "kind": name.capitalize(), "metadata": {"name": "c"}, "spec": {"a": "b"}}
            measured(server, results, "CEL", f"an object with such a rule of 10^{levels}", (201, 422), lambda: server.request("POST", path, resource))


def policies(server, results):
    group = "/apis/admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    expression = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'x')))"
    conditions = [{"name": "named", "expression": "object.metadata.name.startsWith('heavy')"}]
    policy = {"metadata": {"name": "attack"}, "spec": {"matchConstraints": {"resourceRules": rules}, "matchConditions": conditions,
                                                       "validations": [{"expression": expression}]}}
    server.request("POST", f"{group}/validatingadmissionpolicies", policy)
    binding = {"metadata": {"name": "attack"}, "spec": {"policyName": "attack", "validationActions": ["Deny"]}}
    server.request("POST", f"{group}/validatingadmissionpolicybindings", binding)
    time.sleep(1)
    for keys in (100, 200, 2000):
        body = {"metadata": {"name": f"heavy{keys}"}, "data": {f"k{i}": "v" for i in range(keys)}}
        measured(server, results, "CEL", f"a policy of {keys}^3 steps", (403, 422, 500), lambda: server.request("POST", MAPS, body))
    server.request("DELETE", f"{group}/validatingadmissionpolicybindings/attack")


def unread(server, results):
    """Lists of 20 MB that nobody reads."""
    for index in range(40):
        server.request("POST", MAPS, {"metadata": {"name": f"big{index}"}, "data": {"a": "x" * 500_000}})
    before = server.rss()
    line = f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
    connections = [server.raw() for _ in range(30)]
    for connection in connections:
        connection.sendall(line)
    time.sleep(5)
    grown = server.rss() - before
    status, _ = server.request("GET", "/healthz")
    for connection in connections:
        connection.close()
    results.add("unread answers", "30 lists of 20 MB", "< 300 MB more; others are served", f"{grown} MB more, /healthz {status}", grown < 300 and status == 200)
