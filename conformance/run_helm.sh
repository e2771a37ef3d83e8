#!/bin/sh
# Installs, tests, upgrades, rolls back and uninstalls a chart with hooks by Helm, on a
# `kopf cluster` of its own.
# Needs helm 3 (go install helm.sh/helm/v3/cmd/helm@latest), kubectl and a built `kopf`
# (cargo build -p kopf-cli), or KOPF=path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/with_cluster.sh"
export HELM_CACHE_HOME="$work/cache" HELM_CONFIG_HOME="$work/config" HELM_DATA_HOME="$work/data"
chart="$here/helm/chart"

fail() { echo "FAILED: $1" >&2; exit 1; }
expect() { # expect TEXT COMMAND...: the output of the command must be the text
    wanted=$1; shift
    found=$("$@") || fail "$*"
    [ "$found" = "$wanted" ] || fail "$*: expected \"$wanted\", got \"$found\""
    echo "ok: $*"
}
image() { kubectl get deployment web -o 'jsonpath={.spec.template.spec.containers[0].image}'; }
hook() { kubectl get job "web-$1" -o 'jsonpath={.status.succeeded}'; }
status() { helm history web -o json | python3 -c 'import json, sys; print(*(r["status"] for r in json.load(sys.stdin)))'; }

helm lint "$chart" > /dev/null || fail lint
helm install web "$chart" --wait --timeout 60s > /dev/null || fail install
expect 2 kubectl get deployment web -o 'jsonpath={.status.availableReplicas}'
expect 1 hook pre-install
helm test web --timeout 60s > /dev/null || fail test
echo "ok: helm test"
helm upgrade web "$chart" --set image=registry.example.com/web:2,replicas=3 --wait --wait-for-jobs --timeout 60s > /dev/null || fail upgrade
expect registry.example.com/web:2 image
expect 3 kubectl get deployment web -o 'jsonpath={.status.availableReplicas}'
expect 1 hook post-upgrade
if helm upgrade web "$chart" --set stage=never-ready,image=registry.example.com/web:3 --wait --timeout 5s > "$work/failed" 2>&1; then
    fail "an upgrade whose Pods never become ready succeeded"
fi
grep -q "context deadline exceeded\|timed out" "$work/failed" || { cat "$work/failed"; fail "the reason of the failed upgrade"; }
echo "ok: an upgrade whose Pods never become ready fails"
helm rollback web 1 --wait --timeout 60s > /dev/null || fail rollback
expect registry.example.com/web:1 image
expect 1 hook pre-rollback
expect "superseded superseded failed deployed" status
helm upgrade web "$chart" --set replicas=1 --dry-run=server > "$work/dry" || fail "dry run"
expect 2 kubectl get deployment web -o 'jsonpath={.spec.replicas}'
helm uninstall web --wait --timeout 60s > /dev/null || fail uninstall
expect "" kubectl get deployments,services,replicasets -l app=web -o name
