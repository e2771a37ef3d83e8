# variable: REGISTRY=127.0.0.1:$PORT
# The registry in memory; the operator tries again until it is there.
"$(dirname "$PROGRAM")/registry" &
trap 'kill %1' EXIT
kubectl apply -f examples/app-environment/shop.yaml
kubectl wait appenv/shop --for=condition=Ready --timeout=30s
eventually kubectl wait appenv/shop --for=jsonpath='{.status.registry.org}'=shop --timeout=20s
kubectl wait appenv/shop --for=condition=Provisioned --timeout=20s
kubectl get appenv
kubectl get ns,quota,netpol,role,rolebinding,sa,secret -A -l app.kubernetes.io/managed-by=kopf
curl --silent --fail "http://$REGISTRY/users/shop-puller"
kubectl delete netpol walls -n shop-prod
eventually kubectl get netpol walls -n shop-prod
kubectl get appenv shop -o jsonpath='{.status.inputs}' | grep -F '"generation":1'
kubectl delete appenv shop --timeout=30s
kubectl wait ns/shop-prod --for=delete --timeout=30s
! curl --silent --fail "http://$REGISTRY/users/shop-puller"
