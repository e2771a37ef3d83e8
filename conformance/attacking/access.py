"""Identities, tokens, roles and impersonation."""

import base64
import json
import shutil
import subprocess

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/namespaces/default/secrets"


def run(server, results):
    identities(server, results)
    token = make_account(server, "worker")
    tokens(server, results)
    roles(server, results, token)
    impersonation(server, results, token)
    certificates(server, results)


def make_account(server, name):
    server.request("POST", ACCOUNTS, {"metadata": {"name": name}})
    return issue(server, name)[1]["status"]["token"]


def issue(server, name, **spec):
    return server.request("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})


def grant(server, account, name, rules, namespace=""):
    server.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    bindings = f"{RBAC}{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
    server.request("POST", bindings, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})


def identities(server, results):
    cases = [
        ("no token", {}), ("wrong token", {"Authorization": "Bearer wrong"}), ("Basic", {"Authorization": "Basic YTpi"}),
        ("empty Bearer", {"Authorization": "Bearer "}), ("not ASCII", {"Authorization": "Bearer \xff\xfe"}),
        ("X-Remote-User", {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}),
    ]
    for what, headers in cases:
        status, _ = server.request("GET", SECRETS, token=None, headers=headers)
        results.add("identity", what, "400, 401 or 403", status, status in (400, 401, 403))


def tokens(server, results):
    account = make_account(server, "leaver")
    who = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    review = lambda token: server.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", who, token=token)[0]
    results.add("tokens", "a valid one", "201", review(account), review(account) == 201)
    head, claims, signature = account.split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    decoded["sub"] = "system:serviceaccount:kube-system:admin"
    encode = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    forged = {"other claims": f"{head}.{encode(decoded)}.{signature}", "alg none": f"{encode({'alg': 'none'})}.{claims}."}
    for what, token in forged.items():
        status = review(token)
        results.add("tokens", what, "401", status, status == 401)
    status, answer = issue(server, "leaver", audiences=["vault"])
    status = review(answer["status"]["token"])
    results.add("tokens", "for another audience", "401", status, status == 401)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": account, "audiences": ["vault"]}}
    _, answer = server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    allowed = answer.get("status", {}).get("authenticated", False)
    results.add("tokens", "reviewed for another audience", "not authenticated", allowed, not allowed)
    for what, spec, expected in [
        ("one second of life", {"expirationSeconds": 1}, 422),
        ("bound to a Pod that does not exist", {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}}, 404),
    ]:
        status, _ = issue(server, "leaver", **spec)
        results.add("tokens", what, expected, status, status == expected)
    status, _ = issue(server, "nobody")
    results.add("tokens", "of an account that does not exist", 404, status, status == 404)
    server.request("DELETE", f"{ACCOUNTS}/leaver")
    status = review(account)
    results.add("tokens", "account deleted", 401, status, status == 401)
    server.request("POST", ACCOUNTS, {"metadata": {"name": "leaver"}})
    status = review(account)
    results.add("tokens", "account made anew", 401, status, status == 401)


def roles(server, results, token):
    all_rights = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    grant(server, "worker", "attack-roles", [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "patch", "get"]},
    ])
    one = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"], "verbs": ["get", "list", "watch", "patch"]}
    grant(server, "worker", "attack-one", [one], namespace="/namespaces/default")
    binding = {"metadata": {"name": "attack"}, "subjects": [{"kind": "ServiceAccount", "name": "worker", "namespace": "default"}],
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    selector = {"clusterRoleSelectors": [{"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}]}
    writes = [
        ("a role with *", "POST", f"{RBAC}/namespaces/default/roles", {"metadata": {"name": "attack"}, "rules": all_rights}),
        ("bind cluster-admin", "POST", f"{RBAC}/clusterrolebindings", binding),
        ("bind cluster-admin in a namespace", "POST", f"{RBAC}/namespaces/default/rolebindings", binding),
        ("aggregate-to-view with *", "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "attack", "labels": label}, "rules": all_rights}),
        ("aggregationRule over all roles", "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "attack2"}, "aggregationRule": selector}),
        ("more rules for the own role", "PATCH", f"{RBAC}/clusterroles/attack-roles", {"rules": all_rights}),
        ("aggregationRule for the own role", "PATCH", f"{RBAC}/clusterroles/attack-roles", {"aggregationRule": selector}),
    ]
    for what, method, path, body in writes:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        status, _ = server.request(method, path, body, token=token, kind=kind)
        results.add("roles", what, 403, status, status == 403)
    maps = "/api/v1/namespaces/default/configmaps"
    for name in ("one", "two"):
        server.request("POST", maps, {"metadata": {"name": name}})
    reads = [
        ("its name", f"{maps}/one", 200), ("a list of its name", f"{maps}?fieldSelector=metadata.name%3Done", 200),
        ("another name", f"{maps}/two", 403), ("a list", maps, 403), ("a list of two names", f"{maps}?fieldSelector=metadata.name!%3Dtwo", 403),
        ("another namespace", "/api/v1/namespaces/kube-system/configmaps/one", 403), ("all namespaces", "/api/v1/configmaps", 403),
        ("old watch path", "/api/v1/watch/namespaces/default/configmaps", 403), ("secrets", SECRETS, 403),
        ("secrets by an upper-case path", "/API/v1/namespaces/default/secrets", 403),
        ("metrics", "/metrics", 403),
    ]
    for what, path, expected in reads:
        status, _ = server.request("GET", path, token=token)
        results.add("roles", f"resourceNames: {what}", expected, status, status == expected)
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}}
    path = f"{maps}/three?fieldManager=attack"
    status, _ = server.request("PATCH", path, applied, token=token, kind="application/apply-patch+yaml")
    results.add("roles", "an apply that creates", 403, status, status == 403)
    status, _ = server.request("DELETE", maps, token=token)
    results.add("roles", "deletecollection", 403, status, status == 403)


def impersonation(server, results, token):
    cases = [
        ("masters by an account", token, {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}, (403,)),
        ("an account by an account", token, {"Impersonate-User": "system:serviceaccount:kube-system:default"}, (403,)),
        ("masters by nobody", None, {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}, (401, 403)),
        ("a group without a user", "", {"Impersonate-Group": "system:masters"}, (400, 500)),
        ("a uid without a user", "", {"Impersonate-Uid": "1"}, (400, 500)),
    ]
    for what, who, headers, expected in cases:
        status, _ = server.request("GET", SECRETS, token=who, headers=headers)
        results.add("impersonation", what, " or ".join(map(str, expected)), status, status in expected)


def certificates(server, results):
    what = "a request for a certificate in another name"
    if shutil.which("openssl") is None:
        results.add("identity", what, "overwritten", "there is no openssl", None)
        return
    command = ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=a"]
    request = base64.b64encode(subprocess.run(command, check=True, capture_output=True).stdout).decode()
    body = {"metadata": {"name": "attack"}, "spec": {"request": request, "signerName": "kopf.dev/x", "usages": ["client auth"],
                                                     "username": "somebody", "groups": ["system:masters"]}}
    status, answer = server.request("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", body)
    name = answer.get("spec", {}).get("username")
    results.add("identity", what, "overwritten", f"{status} {name}", status == 201 and name != "somebody")
