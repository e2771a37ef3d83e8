kubectl apply -f examples/sample-kustomize/example.yaml
kubectl wait deployment/obj-demo-deploy --for=create --timeout=20s
kubectl wait deployment/obj-demo-deploy --for=jsonpath='{.status.readyReplicas}'=2 --timeout=20s
kubectl get sam,deployments
kubectl patch sam obj --type merge -p '{"spec": {"count": 5}}'
kubectl wait deployment/obj-demo-deploy --for=jsonpath='{.status.readyReplicas}'=5 --timeout=20s
kubectl delete sam obj --timeout=20s
kubectl wait deployment/obj-demo-deploy --for=delete --timeout=60s
