"""Webhooks with odd answers and certificates."""

import base64
import http.server
import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading

GROUP = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"


class Handler(http.server.BaseHTTPRequestHandler):
    answer = staticmethod(lambda uid: {})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        response = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": Handler.answer(request["uid"])}
        body = json.dumps(response).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def patching(operations, **extra):
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda uid: {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": encoded, **extra}


def run(server, results):
    if shutil.which("openssl") is None:
        results.add("webhooks", "all", "refused", "there is no openssl", None)
        return
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = pathlib.Path(folder, "tls.crt"), pathlib.Path(folder, "tls.key")
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
                   "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
        hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        hook.socket = context.wrap_socket(hook.socket, server_side=True)
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        try:
            attacks(server, results, hook.server_address[1], certificate.read_bytes())
        finally:
            hook.shutdown()
            server.request("DELETE", f"{GROUP}/attack")


def attacks(server, results, port, authority):
    bundle = base64.b64encode(authority).decode()
    client = {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    hook = {"name": "attack.kopf.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": client, "rules": rules,
            "timeoutSeconds": 5, "objectSelector": {"matchLabels": {"hooked": "yes"}}}
    for what, url in {"http": "http://127.0.0.1/", "file": "file:///etc/passwd", "a user": "https://a:b@127.0.0.1/", "a query": "https://127.0.0.1/?a", "a fragment": "https://127.0.0.1/#a"}.items():
        body = {"metadata": {"name": "odd"}, "webhooks": [{**hook, "clientConfig": {"url": url}}]}
        status, _ = server.request("POST", GROUP, body)
        results.add("webhooks", f"an address with {what}", "422", status, status == 422)
    server.request("POST", GROUP, {"metadata": {"name": "attack"}, "webhooks": [hook]})
    note = [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]
    create = lambda name: server.request("POST", MAPS, {"metadata": {"name": name, "labels": {"hooked": "yes"}}})
    Handler.answer = staticmethod(patching(note))
    status, answer = create("hooked")
    seen = answer.get("metadata", {}).get("labels", {}).get("seen")
    results.add("webhooks", "a certificate that is its own authority", "201, called", f"{status} {answer.get('message', '')}", status == 201 and seen == "yes")
    move = [{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]
    cases = {"another namespace": patching(move), "another uid in the answer": lambda uid: {"uid": "1", "allowed": True},
             "a patch of nothing": patching([{"op": "remove", "path": "/none/x"}]),
             "a patch type that does not exist": patching(note, patchType="Odd"), "no patch type": patching(note, patchType=None)}
    for index, (what, answer) in enumerate(cases.items()):
        Handler.answer = staticmethod(answer)
        status, body = create(f"moved{index}")
        stray, _ = server.request("GET", f"/api/v1/namespaces/kube-system/configmaps/moved{index}")
        results.add("webhooks", what, "refused", f"{status} {body.get('message', '')}", status >= 400 and stray == 404)
    name = [{"op": "replace", "path": "/metadata/name", "value": "evil"}]
    Handler.answer = staticmethod(patching(name))
    status, _ = create("renamed")
    old, new = (server.request("GET", f"{MAPS}/{name}") for name in ("renamed", "evil"))
    consistent = (old[0] == 404 and new[0] == 200 and new[1]["metadata"]["name"] == "evil") or status >= 400
    results.add("webhooks", "another name", "refused, or stored under the new name", f"{status}, old {old[0]}, new {new[0]}", consistent)
