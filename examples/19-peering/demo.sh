# arguments: --load examples/19-peering/peering.yaml
# The first operator brings the cluster, the second one is more important.
"$PROGRAM" run --priority 100 >"$FOLDER/second" 2>&1 &
trap 'kill %1 2>/dev/null || true' EXIT
says 'Pausing operations'
kubectl get clusterkopfpeering example -o yaml | grep -F 'priority: 100'
kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Greeting
metadata: {name: busy}
END
kubectl wait greeting/busy --for=jsonpath='{.status.create_fn}'="handled by process $!" --timeout=20s
kill -INT %1
says 'Resuming operations'
kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Greeting
metadata: {name: late}
END
kubectl wait greeting/late --for=jsonpath='{.status.create_fn}'="handled by process $OPERATOR" --timeout=20s
