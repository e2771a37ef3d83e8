"""What every operator of the scenarios has: a mark that it has started, and short delays."""

from crosslib import GROUP, call

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.execution.default_backoff = 0.3
    settings.posting.level = 10
    settings.persistence.consistency_timeout = 2
    settings.background.cancellation_polling = 0.3  # else Kopf looks again in a minute


@kopf.on.login()
def login(**kwargs):
    info = kopf.login_with_kubeconfig(**kwargs)
    call("operator", "started")
    return info


@kopf.on.event(GROUP, "v1", "readies")
def ready(name, **_):
    call("operator", f"ready-{name}")
