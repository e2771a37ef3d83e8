# beside: kopf cluster
says 'the operator runs beside us'
kubectl apply -f - <<END
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.kopf.dev}
spec:
  group: kopf.dev
  scope: Namespaced
  names: {kind: Greeting, plural: greetings, singular: greeting}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
eventually kubectl get greetings
kubectl apply -f examples/01-minimal/example.yaml
says 'example is number 1'
says 'example is still here'
