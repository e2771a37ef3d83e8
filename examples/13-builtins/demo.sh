kubectl run web --image=nginx --restart=Never
kubectl wait pod/web --for=condition=Ready --timeout=20s
kubectl annotate pod web kopf.dev/stage=crash,exit-code=3
kubectl wait pod/web --for=jsonpath='{.status.phase}'=Failed --timeout=20s
shows 'web-failed' kubectl get configmaps
