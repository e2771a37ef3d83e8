#!/bin/sh
# Shows the web UI of an operator in a Pod (`kopf ui --pod`) through a real kube-apiserver, and
# compares with `kubectl port-forward`. There is no kubelet: `portforward/main.go` replaces it, with
# the library that container runtimes use to forward ports.
# Needs a real cluster without nodes (cargo xtask kube up; KUBECONFIG), Go, kubectl, curl and
# programs (cargo build -p kopf-cli -p example-13-builtins), or KOPF=path and OPERATOR=path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kopf=${KOPF:-$here/../target/debug/kopf}
operator=${OPERATOR:-$here/../target/debug/example-13-builtins}
pod=kopf-portforward
work=$(mktemp -d)
started=""
finish() {
    for id in $started; do kill "$id" 2> /dev/null || true; done
    exec 3>&-
    # The node removes its objects.
    wait
    rm -rf "$work"
}
trap finish EXIT INT TERM
fail() { echo "FAILED: $1" >&2; tail -n 20 "$work"/*.log >&2; exit 1; }
wait_for() { # wait_for FILE TEXT: until the file contains the text
    for _ in $(seq 300); do
        if grep -q "$2" "$work/$1" 2> /dev/null; then return; fi
        sleep 0.1
    done
    fail "no \"$2\" in $1"
}

(cd "$here/portforward" && CGO_ENABLED=0 go build -trimpath -o "$work/node" .)
mkfifo "$work/end"
"$work/node" < "$work/end" > "$work/node.log" 2>&1 &
exec 3> "$work/end"
wait_for node.log ready

# The operator listens where its probes would be inside of the Pod.
"$operator" run --namespace "$pod" --standalone --liveness http://127.0.0.1:18080/healthz > "$work/operator.log" 2>&1 3>&- &
started="$started $!"
for _ in $(seq 300); do
    if curl -fs http://127.0.0.1:18080/readyz > /dev/null; then break; fi
    sleep 0.1
done

"$kopf" ui --pod "$pod" --namespace "$pod" --pod-port 18080 --no-open > "$work/ui.log" 2>&1 3>&- &
started="$started $!"
wait_for ui.log "The web UI is at"
url=$(sed -n 's/^The web UI is at //p' "$work/ui.log")
token=${url#*#token=}
ask() { curl -fs -H "authorization: Bearer $token" "${url%%/#*}$1"; }
for _ in $(seq 100); do
    ask /api/overview > "$work/overview.json"
    if grep -q '"ready":true' "$work/overview.json"; then break; fi
    sleep 0.1
done
grep -q '"ready":true' "$work/overview.json" || fail "the operator is not ready in the UI"
grep -q "pod/$pod in $pod, port 18080" "$work/overview.json" || fail "the UI does not name the Pod"
ask "/api/object?resource=pods&namespace=$pod&name=$pod" | grep -q '"kind":"Pod"' || fail "the page of the Pod"
echo "ok: kopf ui --pod shows the operator through the API server"

kubectl port-forward -n "$pod" "pod/$pod" 18081:18080 > "$work/kubectl.log" 2>&1 3>&- &
started="$started $!"
wait_for kubectl.log "Forwarding from"
curl -fs http://127.0.0.1:18081/debug/status | grep -q '"ready":true' || fail "kubectl port-forward"
echo "ok: kubectl port-forward shows the same"

if "$kopf" ui --pod nobody --namespace "$pod" --no-open > "$work/nobody.log" 2>&1; then fail "a Pod that does not exist"; fi
grep -q 'pods "nobody" not found' "$work/nobody.log" || fail "the reason for a Pod that does not exist"
echo "ok: a Pod that does not exist is reported"
if "$kopf" ui --pod "$pod" --namespace "$pod" --pod-port 1 --no-open > "$work/closed.log" 2>&1; then fail "a closed port"; fi
echo "ok: a closed port is reported: $(head -n 2 "$work/closed.log" | tr '\n' ' ')"
