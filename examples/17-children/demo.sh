kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Crew
metadata: {name: argo}
spec: {members: [jason, orpheus]}
END
kubectl wait crew/argo --for=jsonpath='{.status.aboard}'='2 of 2' --timeout=20s
kubectl get pods | grep -F argo-orpheus
kubectl delete pod argo-orpheus
kubectl wait crew/argo --for=jsonpath='{.status.aboard}'='1 of 1' --timeout=40s
kubectl delete crew argo
kubectl wait pod/argo-jason --for=delete --timeout=40s
