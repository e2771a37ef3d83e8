kubectl apply -f examples/01-minimal/example.yaml
kubectl wait greeting/example --for=jsonpath='{.status.create_fn.message}'='hello world' --timeout=20s
says 'And here we are! Creating example'
