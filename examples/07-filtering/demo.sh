kubectl apply -f - <<END
apiVersion: kopf.dev/v1
kind: Greeting
metadata: {name: one, labels: {tier: gold, team: blue}, annotations: {mood: great}}
spec: {field: a, size: 9}
---
apiVersion: kopf.dev/v1
kind: Greeting
metadata: {name: two, labels: {tier: gold}, annotations: {mood: great, skip: "yes"}}
spec: {field: b, size: 2}
END
says 'gold for blue'
says 'one is in a good mood'
says 'one is big'
kubectl patch greeting one --type merge -p '{"spec": {"field": "b"}}'
says 'from a to b'
! grep -E 'two is (big|in a good mood)' "$LOG"
