kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Drawer
metadata: {name: kitchen}
spec: {items: [spoons, forks]}
END
says 'drawer kitchen is labelled'
says 'too heavy'
shows 'spoons is placed' kubectl get drawer kitchen -o jsonpath='{.status}'
shows 'forks is placed' kubectl get drawer kitchen -o jsonpath='{.status}'
