kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Greeting
metadata: {name: example, labels: {slow: "yes"}}
spec: {field: value}
END
says 'the field is "value" now'
kubectl patch greeting example --type merge -p '{"spec": {"field": "other"}}'
says 'the field is "other" now'
says 'example is slow'
kubectl delete greeting example --timeout=20s
says 'stopping because of'
