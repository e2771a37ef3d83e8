# variable: KOPF_RUN_LIVENESS_ENDPOINT=http://127.0.0.1:$PORT/healthz
says 'the operator is starting'
shows '"uptime":' curl --silent "$KOPF_RUN_LIVENESS_ENDPOINT"
kubectl apply -f examples/01-minimal/example.yaml
shows 'Handler create_fn succeeded' kubectl describe greeting example
stop
says 'the operator has stopped'
