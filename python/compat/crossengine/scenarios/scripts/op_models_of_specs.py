"""Specs as models: validation errors, results from models, templates of children, own log levels."""

import logging

import jinja2
import pydantic
import yaml
from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "good", {"spec": {"replicas": 2, "image": "nginx", "ports": [80, 443]}}),
    ("create", "bad", {"spec": {"replicas": "many"}}),
    ("patch", "bad", {"spec": {"replicas": 1, "image": "x", "ports": []}}),
    ("patch", "good", {"spec": {"image": None}}),
    ("delete", "good"),
    ("delete", "bad"),
]
TEMPLATE = jinja2.Environment(trim_blocks=True).from_string(
    """
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ name }}-app, labels: {{ labels | tojson }}}
spec:
  replicas: {{ spec.replicas }}
  template:
    spec:
      containers:
        - image: {{ spec.image }}
          ports:
{% for port in spec.ports %}
            - containerPort: {{ port }}
{% endfor %}
"""
)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    replicas: int
    image: str
    ports: list[int] = pydantic.Field(default_factory=list)


@kopf.on.startup()
def configure(settings, logger, **_):
    settings.posting.level = logging.WARNING
    settings.posting.reporting_component = "models"
    logger.debug("posting %s", settings.posting.level)


def parse(spec) -> Model:
    try:
        return Model(**spec)
    except pydantic.ValidationError as e:
        fields = ", ".join(str(error["loc"][0]) for error in e.errors())
        raise kopf.PermanentError(f"wrong fields: {fields}") from e


@kopf.on.create(*EX)
@kopf.on.update(*EX)
def render(spec, name, labels, logger, body, meta, **_):
    model = parse(spec)
    text = TEMPLATE.render(name=name, spec=spec, labels=dict(labels))
    child = yaml.safe_load(text)
    kopf.adopt(child)
    kopf.label(child, {"app": name}, nested=["spec.template"])
    kopf.harmonize_naming(child)
    containers = child["spec"]["template"]["spec"]["containers"]
    note(name, child["metadata"]["name"], child["metadata"]["namespace"], containers)
    note(child["spec"]["template"]["metadata"], meta.generation is not None)
    logger.warning("rendered %d bytes", len(text) > 10, extra={"size": 1})
    try:
        {}["missing"]
    except KeyError:
        logger.exception("a mistake")
    return model.model_dump()


@kopf.on.create(*EX, id="model-as-result")
def result(spec, **_):
    # A model is not JSON: this is an error of the result, not of the handler.
    return {"ports": tuple(spec.get("ports", ())), "ratio": 0.5, "none": None}


@kopf.on.delete(*EX, field="spec.image", value=kopf.PRESENT)
def delete(spec, name, **_):
    note("delete", name, spec["image"])
