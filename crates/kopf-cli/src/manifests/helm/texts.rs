//! The parts of a chart that are the same for every operator.

use serde_json::{Value, json};

use crate::manifests::Options;

/// A placeholder and the replacement of its line: `SPACE` is the indentation of the line and
/// `LEVEL` the same as a number; `INDENT` is the indentation of nested content, as a number.
type Filling = (&'static str, &'static str);

pub(super) const REPLICAS: Filling =
    ("kopf-word-replicas", "SPACEreplicas: {{ $.Values.replicas }}");
pub(super) const RESOURCES: Filling =
    ("kopf-word-resources", "SPACEresources:\n{{- toYaml $.Values.resources | nindent INDENT }}");
pub(super) const PULL_POLICY: Filling =
    ("kopf-word-pull-policy", "SPACEimagePullPolicy: {{ $.Values.image.pullPolicy }}");
pub(super) const ENVIRONMENT: Filling =
    ("kopf-word-env", "{{- with $.Values.env }}\n{{- toYaml . | nindent LEVEL }}\n{{- end }}");
pub(super) const POD: Filling =
    ("kopf-word-pod", "{{- with $.Values.pod }}\n{{- toYaml . | nindent 6 }}\n{{- end }}");
pub(super) const ARGUMENTS: Filling = (
    "kopf-word-arguments",
    "{{- range $.Values.namespaces }}\nSPACE- --namespace={{ . }}\n{{- else }}\n\
     SPACE- --all-namespaces\n{{- end }}\n\
     {{- range $.Values.extraArgs }}\nSPACE- {{ . | quote }}\n{{- end }}",
);
pub(super) const PEERS: Filling = (
    "kopf-word-peers",
    "{{- with $.Values.networkPolicy.metricsFrom }}\nSPACEfrom:\n{{- range . }}\n\
     SPACE- namespaceSelector:\nSPACE    matchLabels:\n\
     SPACE      kubernetes.io/metadata.name: {{ . }}\n{{- end }}\n{{- end }}",
);
pub(super) const KEEP: Filling = (
    "kopf-word-keep",
    "{{- if $.Values.crds.keep }}\nSPACEhelm.sh/resource-policy: keep\n{{- else }}\n\
     SPACEhelm.sh/chart: {{ $.Chart.Name }}\n{{- end }}",
);

/// A test of `helm test`: the image can be pulled, and the program in it runs.
pub(super) const TEST: &str = "apiVersion: v1
kind: Pod
metadata:
  name: kopf-word-title-test
  namespace: kopf-word-namespace
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
    # In an embedded cluster, Pods are simulated: this one succeeds.
    kopf.dev/stage: complete
spec:
  restartPolicy: Never
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
  containers:
  - name: describe
    image: kopf-word-image
    args: [describe]
";

/// `Chart.yaml`.
pub(super) fn chart(name: &str) -> Value {
    json!({
        "apiVersion": "v2",
        "name": name,
        "description": format!("The Kubernetes operator {name}"),
        "type": "application",
        "version": "0.1.0",
        "appVersion": "latest",
    })
}

/// `values.yaml`, with a comment for each value.
pub(super) fn values(options: &Options) -> String {
    let Options { image, replicas, .. } = options;
    let metrics_from = json!(options.metrics_from);
    let advice = match options.has_replicas() {
        true if options.shards => "They share the objects.",
        true => "One of them leads, and the others stand by.",
        false => {
            "More than one would handle everything twice; generate the chart with --replicas instead."
        }
    };
    let is_guarded = *replicas > 1;
    let (repository, tag) = match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image.as_str(), "latest"),
    };
    format!(
        "# The image of the operator.
image:
  repository: {repository}
  tag: {tag:?}
  pullPolicy: IfNotPresent

# How many run. {advice}
replicas: {replicas}

# The namespaces that are served, with rights only there; none means the whole cluster.
namespaces: []

# More options of `run`, such as --log-format=json.
extraArgs: []

# More environment variables, as in a container.
env: []

resources:
  requests:
    cpu: 10m
    memory: 32Mi
  limits:
    memory: 128Mi

# Any further fields of the Pod: nodeSelector, tolerations, affinity, imagePullSecrets, ...
pod: {{}}

rbac:
  create: true

serviceAccount:
  annotations: {{}}

# The definitions of the operator's resources.
# Without `keep`, `helm uninstall` deletes them, and all objects with them.
crds:
  install: true
  keep: true

metrics:
  # A Service for the metrics.
  enabled: false
  # These need the Prometheus operator.
  serviceMonitor:
    enabled: false
  alerts:
    enabled: false
  # A ConfigMap that Grafana's side-car loads.
  dashboard:
    enabled: false

# Allows connections to the ports of metrics, probes and webhooks only.
networkPolicy:
  enabled: false
  # The namespaces whose Pods may read the metrics; none means all.
  metricsFrom: {metrics_from}

podDisruptionBudget:
  enabled: {is_guarded}
"
    )
}

/// `values.schema.json`: a misspelt value is an error.
pub(super) fn schema() -> String {
    let flag = json!({"type": "boolean"});
    let switch = json!({
        "type": "object", "additionalProperties": false, "properties": {"enabled": flag},
    });
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let object = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let pull = json!({"enum": ["Always", "IfNotPresent", "Never"]});
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "global": {"type": "object"},
            "image": object(json!({"repository": text, "tag": text, "pullPolicy": pull})),
            "replicas": {"type": "integer", "minimum": 0},
            "namespaces": texts,
            "extraArgs": texts,
            "env": {"type": "array", "items": {"type": "object"}},
            "resources": {"type": "object"},
            "pod": {"type": "object"},
            "rbac": object(json!({"create": flag})),
            "serviceAccount": object(json!({"annotations": {"type": "object"}})),
            "crds": object(json!({"install": flag, "keep": flag})),
            "metrics": object(json!({
                "enabled": flag, "serviceMonitor": switch, "alerts": switch, "dashboard": switch,
            })),
            "networkPolicy": object(json!({"enabled": flag, "metricsFrom": texts})),
            "podDisruptionBudget": switch,
        },
    });
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// The common name: that of the chart, prefixed with that of the release if they differ.
pub(super) fn helpers(name: &str) -> String {
    format!(
        "{{{{- define \"{name}.name\" -}}}}
{{{{- if contains .Chart.Name .Release.Name }}}}{{{{ .Release.Name | trunc 63 | trimSuffix \"-\" }}}}
{{{{- else }}}}{{{{ printf \"%s-%s\" .Release.Name .Chart.Name | trunc 63 | trimSuffix \"-\" }}}}
{{{{- end }}}}
{{{{- end }}}}
"
    )
}

/// The notes after an installation.
pub(super) fn notes(name: &str) -> String {
    format!(
        "The operator {{{{ include \"{name}.name\" . }}}} is installed in {{{{ .Release.Namespace }}}}.

  kubectl -n {{{{ .Release.Namespace }}}} rollout status deployment/{{{{ include \"{name}.name\" . }}}}
  kubectl -n {{{{ .Release.Namespace }}}} logs deployment/{{{{ include \"{name}.name\" . }}}} --follow

Delete the objects of the operator before you uninstall it: their finalizers wait for it.
"
    )
}
