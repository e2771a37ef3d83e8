kubectl apply -f examples/kopfexample/example.yaml
kubectl wait kex/kopf-example-1 --for=jsonpath='{.status.create_fn.message}'='hello world' --timeout=20s
kubectl patch kex kopf-example-1 --type merge -p '{"spec": {"field": "other"}}'
shows 'Handler update_fn succeeded.' kubectl describe kex kopf-example-1
kubectl describe kex kopf-example-1 | grep -E 'Normal +Success .* kopf +Handler create_fn succeeded\.'
says 'UPDATED: diff='
says 'FIELD CHANGED: Some("value") -> Some("other")'
kubectl delete -f examples/kopfexample/example.yaml --timeout=20s
says 'DELETED kopf-example-1'
