kubectl apply -f examples/01-minimal/example.yaml
kubectl wait greeting/example --for=jsonpath='{.status.message}'='Hello, World!' --timeout=20s
says '[default/example] Hello, World!'
