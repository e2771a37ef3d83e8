kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Trial
metadata: {name: good}
spec: {size: "7"}
END
says 'the size is 7'
kubectl wait trial/good --for=jsonpath='{.status.temporary}'='done after 4 attempts' --timeout=20s
says 'No such file'

kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Trial
metadata: {name: bad}
spec: {size: much}
END
says 'invalid digit found in string'
