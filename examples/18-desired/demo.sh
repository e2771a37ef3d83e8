kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Site
metadata: {name: blog}
spec: {replicas: 2, port: 80}
END
kubectl wait site/blog --for=condition=Ready --timeout=30s
kubectl get deployment/blog service/blog
shows '= Service default/blog (ready)' "$PROGRAM" plan
kubectl delete service blog
eventually kubectl get service blog
kubectl scale deployment blog --replicas 7
kubectl wait deployment/blog --for=jsonpath='{.spec.replicas}'=2 --timeout=20s
kubectl patch site blog --type merge -p '{"spec": {"port": null}}'
kubectl wait service/blog --for=delete --timeout=20s
kubectl patch site blog --type merge -p '{"spec": {"replicas": 11}}'
shows 'a site has ten replicas at most' kubectl get site blog -o jsonpath='{.status.conditions}'
kubectl delete site blog
kubectl wait deployment/blog --for=delete --timeout=30s
