kubectl apply -f examples/registry-mirror/quay.yaml
kubectl wait mirror/quay --for=condition=Ready --timeout=30s
kubectl get mirror | grep -E '^quay +https://quay.io +True'
[ "$(kubectl get svc,sts,ds,pvc -l app.kubernetes.io/instance=quay --no-headers | wc -l)" -ge 5 ]

first=$(kubectl get svc quay-node -o jsonpath='{.metadata.uid}')
kubectl delete svc quay-node
eventually kubectl get svc quay-node
[ "$first" != "$(kubectl get svc quay-node -o jsonpath='{.metadata.uid}')" ]
kubectl scale sts quay-registry --replicas 0
kubectl wait sts/quay-registry --for=jsonpath='{.spec.replicas}'=1 --timeout=20s

shows '0 children to create, 0 to change, 0 to delete, 0 impossible, 5 as they are' "$PROGRAM" plan

kubectl patch mirror quay --type merge -p '{"spec": {"upstream": "ftp://quay.io"}}'
kubectl wait mirror/quay --for=condition=Ready=False --timeout=20s
kubectl get mirror quay -o jsonpath='{.status.conditions}' | grep -F 'must be an https:// address'
shows 'must be an https:// address' kubectl describe mirror quay
kubectl patch mirror quay --type merge -p '{"spec": {"upstream": "https://quay.io"}}'
kubectl wait mirror/quay --for=condition=Ready --timeout=30s

kubectl delete mirror quay --timeout=20s
kubectl wait svc/quay-registry sts/quay-registry ds/quay-node --for=delete --timeout=30s
