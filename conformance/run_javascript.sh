#!/bin/sh
# Runs the informer of the JavaScript client (npm) on a `kopf cluster` of its own.
# Needs Node, npm and a built `kopf` (cargo build -p kopf-cli), or KOPF=path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/with_cluster.sh"
cp "$here/javascript/package.json" "$here/javascript/informer.mjs" "$work"
cd "$work"
npm install --silent --no-audit --no-fund
node informer.mjs
