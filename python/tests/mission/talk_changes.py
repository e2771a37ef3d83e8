# From a talk about Kopf: convenient cause- & diff-handlers.
import kopf


@kopf.on.create("zalando.org", "v1", "kopfexamples")
def create_fn_1(spec, **kwargs):
    print(f"CREATED 1st: field={spec['field']}")


@kopf.on.create("zalando.org", "v1", "kopfexamples")
def create_fn_2(meta, **kwargs):
    print(f"CREATED 2nd: name={meta['name']}")


@kopf.on.update("zalando.org", "v1", "kopfexamples")
def update_fn(old, new, diff, **kwargs):
    print(f"UPDATED: diff={diff}")


@kopf.on.delete("zalando.org", "v1", "kopfexamples")
def delete_fn_1(**kwargs):
    print("DELETED")


@kopf.on.field("zalando.org", "v1", "kopfexamples", field="spec.field")
def field_fn(old, new, **kwargs):
    print(f"FIELD CHANGED: {old} -> {new}")
