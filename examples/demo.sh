#!/usr/bin/env bash
# Runs the demonstration of an example with a real kubectl: examples/demo.sh load-test
# Starts the example with its embedded cluster, runs examples/NAME/demo.sh against it, stops it.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1
folder=$(mktemp -d)
cargo build --quiet -p "example-$name"
program="${CARGO_TARGET_DIR:-target}/debug/example-$name"

KUBECONFIG="$folder/kubeconfig"
export KUBECONFIG
"$program" run --embedded --kubeconfig "$KUBECONFIG" >"$folder/log" 2>&1 &
operator=$!
finish() {
    code=$?
    kill -INT "$operator" 2>/dev/null || true
    wait "$operator" || true
    [ "$code" -eq 0 ] || tail -n 50 "$folder/log"
    rm -rf "$folder"
}
trap finish EXIT

for _ in $(seq 1 100); do
    kubectl get namespaces >/dev/null 2>&1 && break
    sleep 0.2
done
bash -eux -o pipefail "examples/$name/demo.sh"
echo "the demonstration of $name works"
