kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Greeting
metadata: {name: example}
spec: {field: value}
END
says 'CREATED 1st: field=value'
says 'CREATED 2nd: name=example, field="value"'
says 'CONNECTED to example because of create'
kubectl patch greeting example --type merge -p '{"spec": {"field": "other"}}'
says 'UPDATED: '
says 'FIELD CHANGED: Some("value") -> Some("other")'
kubectl delete greeting example --timeout=20s
says 'DELETED example'
