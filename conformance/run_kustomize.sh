#!/bin/sh
# Builds an overlay with kustomize and applies, changes, prunes and deletes it with kubectl, on a
# `kopf cluster` of its own.
# Needs kubectl, a built `kopf` (cargo build -p kopf-cli) or KOPF=path, and kustomize
# (go install sigs.k8s.io/kustomize/kustomize/v5@latest), or the one in kubectl.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/with_cluster.sh"
fail() { echo "FAILED: $1" >&2; exit 1; }
if command -v kustomize > /dev/null; then
    build() { kustomize build "$1"; }
else
    build() { kubectl kustomize "$1"; }
fi
cp -r "$here/kustomize" "$work/k"
build "$work/k/overlay" > "$work/first.yaml" || fail build
kubectl apply -f "$work/first.yaml" > /dev/null || fail apply
kubectl rollout status -n overlay deployment/big-web --timeout 60s || fail rollout
[ "$(build "$work/k/overlay" | kubectl diff -f -)" = "" ] || fail "a diff without a change"
[ "$(kubectl get deployment -n overlay big-web -o 'jsonpath={.spec.template.spec.containers[0].image}')" = registry.example.com/web:2 ] || fail image
sed -i 's/mode=overlay/mode=changed/' "$work/k/overlay/kustomization.yaml"
build "$work/k/overlay" | kubectl apply -n overlay -f - --prune -l tier=big --prune-allowlist=core/v1/ConfigMap > "$work/second" || fail "apply with pruning"
grep -q pruned "$work/second" || { cat "$work/second"; fail "the old ConfigMap is not pruned"; }
kubectl rollout status -n overlay deployment/big-web --timeout 60s || fail "second rollout"
[ "$(kubectl get configmaps -n overlay -l tier=big -o 'jsonpath={.items[*].data.mode}')" = changed ] || fail "the new ConfigMap"
build "$work/k/overlay" | kubectl delete --ignore-not-found -f - --timeout 60s > /dev/null || fail delete
[ "$(kubectl get namespace overlay --ignore-not-found -o name)" = "" ] || fail "the namespace is still there"
echo "ok: built, applied, changed, pruned and deleted"
