kubectl apply -f - <<END
apiVersion: example.com/v1
kind: Database
metadata: {name: orders}
spec: {sizeGb: 10}
END
kubectl wait db/orders --for=jsonpath='{.status.phase}'=Ready --timeout=20s
says 'a disk of 10 GB'
kubectl get db | grep -E 'PHASE'

kubectl patch db orders --type merge -p '{"spec": {"sizeGb": 20}}'
shows 'from Some(10) to Some(20) GB' kubectl describe db orders
kubectl patch db orders --type merge -p '{"spec": {"sizeGb": 5}}'
says 'disks cannot shrink'
