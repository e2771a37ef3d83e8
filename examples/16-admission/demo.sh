says 'webhook'
eventually kubectl get validatingwebhookconfigurations admission.kopf.dev
kubectl apply -f - <<END
apiVersion: example.com/v1
kind: Bucket
metadata: {name: small}
spec: {size: 5}
END
kubectl get bucket small -o jsonpath='{.spec.class}' | grep -x standard
kubectl patch bucket small --type merge -p '{"spec": {"size": 60}}' 2>&1 | grep -F 'this bucket is unusually big'
kubectl create rolebinding jane --clusterrole=admin --user=jane
kubectl create role buckets --verb='*' --resource=buckets.example.com
kubectl create rolebinding janes-buckets --role=buckets --user=jane
shows 'only masters may have more than 100' \
    kubectl --as jane patch bucket small --type merge -p '{"spec": {"size": 200}}'
kubectl patch bucket small --type merge -p '{"spec": {"size": 200}}'
