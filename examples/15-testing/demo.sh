kubectl create configmap mine --from-literal=key=value
kubectl label configmap mine app=web
kubectl create configmap yours --from-literal=key=value
sleep 60
kubectl wait configmap/mine --for=jsonpath='{.metadata.labels.age}'=old --timeout=20s
kubectl get configmap yours -o jsonpath='{.metadata.labels}' | grep -vF old || true
