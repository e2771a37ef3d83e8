#!/bin/sh
# Runs an operator of controller-runtime with leader election, and a client-go informer with
# WatchList, on a `kopf cluster` of its own.
# Needs Go and a built `kopf` (cargo build -p kopf-cli), or KOPF=path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/with_cluster.sh"
cd "$here/go"
CGO_ENABLED=0 go build -trimpath -o "$work/client" .
KUBE_FEATURE_WatchListClient=true "$work/client"
