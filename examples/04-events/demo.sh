kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Greeting
metadata: {name: example}
spec: {field: value}
END
says 'event received: '
says 'oops!'

kubectl run web --image=nginx --labels=app=web
says 'of pod default/web'
kubectl run old --image=nginx --labels=app=web,legacy=yes
kubectl delete pod web
says 'Some(Deleted) of pod default/web'
! grep -F 'of pod default/old' "$LOG"
