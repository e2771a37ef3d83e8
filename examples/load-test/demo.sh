kubectl apply -f examples/load-test/example.yaml
kubectl wait ld/example-02 --for=jsonpath='{.status.state}'=executing --timeout=20s
kubectl get ld,pods
kubectl annotate pod example-02-1-0 kopf.dev/stage=crash,exit-code=22
kubectl annotate pods example-02-1-{1,2,3,4} kopf.dev/stage=complete
kubectl wait ld/example-02 --for=jsonpath='{.status.state}'=failed --timeout=20s
kubectl get ld example-02 -o jsonpath='{.status.failures}' | grep '"exitCode":22'
kubectl patch ld example-02 --type merge -p '{"spec": {"replicas": 2}}'
kubectl wait ld/example-02 --for=jsonpath='{.status.state}'=executing --timeout=20s
kubectl annotate pods -l example.org/run=2 kopf.dev/stage=complete
kubectl wait ld/example-02 --for=jsonpath='{.status.state}'=finished --timeout=20s
kubectl get ld,pods
kubectl delete ld example-02 --timeout=20s
kubectl wait pods -l app=loadtest --for=delete --timeout=60s
