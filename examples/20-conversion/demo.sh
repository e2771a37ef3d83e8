says 'Pointing the conversion of disks.example.com to this operator.'
kubectl apply -f - <<END
apiVersion: example.com/v1
kind: Disk
metadata: {name: old, labels: {app: web}}
spec: {size: 5Gi}
END
says 'providing 5 times 1Gi'
kubectl get disks.v2.example.com old -o jsonpath='{.spec.size} {.spec.unit} {.metadata.labels.app}' | grep -x '5 Gi web'
kubectl patch disks.v2.example.com old --type merge -p '{"spec": {"size": 7}}'
kubectl get disks.v1.example.com old -o jsonpath='{.spec.size}' | grep -x 7Gi
shows 'cannot parse integer' kubectl patch disks.v1.example.com old --type merge -p '{"spec": {"size": "-1Gi"}}'
