kubectl apply -f examples/kopfexample/example.yaml
kubectl wait kex/kopf-example-1 --for=jsonpath='{.status.create_fn.message}'='hello world' --timeout=20s
kubectl patch kex kopf-example-1 --type merge -p '{"spec": {"field": "other"}}'
for _ in $(seq 1 50); do
    kubectl describe kex kopf-example-1 >"$KUBECONFIG.described"
    grep -q 'Handler update_fn succeeded' "$KUBECONFIG.described" && break
    sleep 0.2
done
cat "$KUBECONFIG.described"
grep -E 'Normal +Success .* kopf +Handler create_fn succeeded\.' "$KUBECONFIG.described"
grep -E 'Normal +Success .* kopf +Handler update_fn succeeded\.' "$KUBECONFIG.described"
kubectl delete -f examples/kopfexample/example.yaml --timeout=20s
