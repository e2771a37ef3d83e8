# arguments: --liveness http://127.0.0.1:18090/healthz
says 'the operator is starting'
shows '"uptime":' curl --silent http://127.0.0.1:18090/healthz
kubectl apply -f examples/01-minimal/example.yaml
shows 'Handler create_fn succeeded' kubectl describe greeting example
stop
says 'the operator has stopped'
