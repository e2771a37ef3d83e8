# variable: KOPF_RUN_LIVENESS_ENDPOINT=http://127.0.0.1:$PORT/healthz
kubectl run web --image=nginx
kubectl wait pod/web --for=condition=Ready --timeout=20s
node=$(kubectl get pod web -o jsonpath='{.spec.nodeName}')
says "node $node has 1 pods: [\"web\"]"
shows '"nodes_in_use":1' curl --silent "$KOPF_RUN_LIVENESS_ENDPOINT"
