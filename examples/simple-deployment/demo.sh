kubectl apply -f examples/simple-deployment/example.yaml
kubectl wait sd/example-01 --for=jsonpath='{.status.children[0]}' --timeout=20s
kubectl wait pod/example-01 --for=condition=Ready --timeout=20s
kubectl get sd,pods
uid=$(kubectl get pod example-01 -o jsonpath='{.metadata.uid}')
kubectl get sd example-01 | grep -F "$uid"
kubectl get sd example-01 | grep -F Running
kubectl annotate pod example-01 kopf.dev/stage=complete
kubectl wait sd/example-01 --for=jsonpath='{.status.phase}'=Succeeded --timeout=20s
kubectl delete sd example-01 --timeout=20s
kubectl wait pod/example-01 --for=delete --timeout=60s
