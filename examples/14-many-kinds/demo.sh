kubectl create deployment web --image=nginx
says 'deployments.v1.apps default/web'
says 'a set: '

kubectl apply -f - <<END
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: novelties.kopf.dev}
spec:
  group: kopf.dev
  scope: Namespaced
  names: {kind: Novelty, plural: novelties, singular: novelty}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
eventually kubectl get novelties
kubectl create -f - <<<'{"apiVersion": "kopf.dev/v1", "kind": "Novelty", "metadata": {"name": "first"}}'
kubectl wait novelty/first --for=jsonpath='{.status.ours.kind}'=Novelty --timeout=20s
