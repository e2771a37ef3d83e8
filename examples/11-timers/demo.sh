kubectl apply -f examples/01-minimal/example.yaml
says 'tick 1 of example'
says 'tick 2 of example'
kubectl wait greeting/example --for=jsonpath='{.status.tick}'=2 --timeout=20s
