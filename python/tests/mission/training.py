# From a training about operators: a deployment for every Sample, made by kubectl.
import logging
import os
import subprocess

import kopf


@kopf.on.login()
def sample_login(**kwargs):
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    if os.path.isfile(token):
        logging.debug("found serviceaccount token: login via service account in kubernetes")
        return kopf.login_with_service_account(**kwargs)
    logging.debug("login via client")
    return kopf.login_with_kubeconfig(**kwargs)


# generate patch
def patch(n):
    return f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: demo-deploy
spec:
  replicas: {n}
"""


# run kubectl
def kubectl(cmd, patch):
    with open("deploy/patch.yaml", "w") as f:
        f.write(patch)
    res = subprocess.run(["kubectl", cmd, "-k", "deploy"], capture_output=True)
    return res.stdout.decode()


@kopf.on.create("nuvolaris.org", "v1", "samples")
def sample_create(spec, **kwargs):
    count = spec["count"]
    message = kubectl("apply", patch(count))
    return {"message": message}


@kopf.on.delete("nuvolaris.org", "v1", "samples")
def sample_delete(spec, **kwargs):
    count = spec["count"]
    message = kubectl("delete", patch(count))
    return {"message": "delete"}
