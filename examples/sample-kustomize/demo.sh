kubectl apply -f examples/sample-kustomize/example.yaml
kubectl wait deployment/obj-demo-deploy --for=create --timeout=20s
kubectl wait deployment/obj-demo-deploy --for=jsonpath='{.status.readyReplicas}'=2 --timeout=20s
kubectl get sam,deployments
kubectl patch sam obj --type merge -p '{"spec": {"count": 5}}'
kubectl wait deployment/obj-demo-deploy --for=jsonpath='{.status.readyReplicas}'=5 --timeout=20s
kubectl delete sam obj --timeout=20s
kubectl wait deployment/obj-demo-deploy --for=delete --timeout=60s

# The same by `kubectl apply -k`, in a cluster of its own.
export KUBECONFIG="$FOLDER/second"
SAMPLE_KUBECTL=1 "$PROGRAM" run --embedded --kubeconfig "$KUBECONFIG" >"$FOLDER/second.log" 2>&1 &
trap 'kill -INT %1' EXIT
eventually kubectl get samples
kubectl apply -f examples/sample-kustomize/example.yaml
kubectl wait deployment/obj-demo-deploy --for=create --timeout=20s
kubectl wait deployment/obj-demo-deploy --for=jsonpath='{.status.readyReplicas}'=2 --timeout=20s
shows 'deployment.apps/obj-demo-deploy' kubectl get sam obj -o jsonpath='{.status.message}'
kubectl delete sam obj --timeout=20s
kubectl wait deployment/obj-demo-deploy --for=delete --timeout=60s

# Packaging: what `manifests` derives is complete, and the server accepts it.
"$PROGRAM" manifests --image you/sample-kustomize:1 --output "$FOLDER/deploy"
kubectl apply -k "$FOLDER/deploy"
kubectl wait deployment/sample-kustomize --for=create --timeout=20s
