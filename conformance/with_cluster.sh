# To be read by the other scripts: starts a `kopf cluster` in a temporary folder, $work, and ends it.
kopf=${KOPF:-$here/../target/debug/kopf}
work=$(mktemp -d)
"$kopf" cluster --kubeconfig "$work/kubeconfig" ${CLUSTER_OPTIONS:-} > "$work/cluster.log" 2>&1 &
cluster=$!
trap 'kill "$cluster" 2> /dev/null || true; rm -rf "$work"' EXIT INT TERM
while [ ! -s "$work/kubeconfig" ]; do
    kill -0 "$cluster" || { cat "$work/cluster.log"; exit 1; }
    sleep 0.1
done
export KUBECONFIG="$work/kubeconfig"
