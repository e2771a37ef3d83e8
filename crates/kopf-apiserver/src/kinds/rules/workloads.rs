//! Rules of the kinds that keep pods running.

use serde_json::Value;

use super::{Problems, go_text, jobs, labels, pod_spec};
use crate::kinds::fields::text;
use crate::{FieldError, FieldErrorReason};

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    match resource {
        "deployments" | "replicasets" | "daemonsets" | "statefulsets" => {
            let kind = resource.trim_end_matches('s');
            replicated(kind, spec, problems);
        }
        "replicationcontrollers" => {
            problems.not_negative("spec.replicas", &spec["replicas"]);
            let labels = &spec["template"]["metadata"]["labels"];
            let wanted = spec["selector"].as_object().into_iter().flatten();
            if !wanted.clone().all(|(key, value)| labels.get(key) == Some(value)) {
                problems.invalid_text(
                    "spec.template.metadata.labels",
                    &go_text::string_map(labels),
                    "`selector` does not match template `labels`",
                );
            }
            template(&spec["template"], "spec.template", &["Always"], problems);
        }
        "jobs" => jobs::job(spec, problems),
        "cronjobs" => jobs::cron_job(object, problems),
        "horizontalpodautoscalers" => jobs::autoscaler(spec, problems),
        _ => {}
    }
}

fn replicated(kind: &str, spec: &Value, problems: &mut Problems) {
    problems.not_negative("spec.replicas", &spec["replicas"]);
    problems.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    problems.not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"]);
    let selector = &spec["selector"];
    if kind == "statefulset" {
        let policies = ["OrderedReady", "Parallel"];
        let value = &spec["podManagementPolicy"];
        if !value.as_str().is_some_and(|policy| policies.contains(&policy)) {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            problems.invalid("spec.podManagementPolicy", value, detail);
        }
    }
    if selector.is_null() {
        // DaemonSets complain about the labels only.
        if kind != "daemonset" {
            problems.required("spec.selector", "");
        }
    } else {
        labels::check(selector, "spec.selector", problems);
        if labels::is_empty(selector) {
            let shown = go_text::label_selector(selector);
            let detail = match kind {
                "deployment" => "empty selector is invalid for deployment",
                "daemonset" => "empty selector is invalid for daemonset",
                "statefulset" => "empty selector is invalid for statefulset",
                _ => "empty selector is invalid for deployment",
            };
            problems.invalid_text("spec.selector", &shown, detail);
        }
    }
    let template_labels = &spec["template"]["metadata"]["labels"];
    let selects_nothing = selector.is_null()
        || (!labels::is_empty(selector) && !labels::selects(selector, template_labels));
    if selects_nothing {
        problems.invalid_text(
            "spec.template.metadata.labels",
            &go_text::string_map(template_labels),
            "`selector` does not match template `labels`",
        );
    }
    template(&spec["template"], "spec.template", &["Always"], problems);
    match kind {
        "deployment" => deployment(spec, problems),
        "statefulset" => stateful_set(spec, problems),
        "daemonset" => daemon_set(spec, problems),
        _ => {}
    }
}

fn deployment(spec: &Value, problems: &mut Problems) {
    let strategy = &spec["strategy"];
    let types = ["Recreate", "RollingUpdate"];
    if !types.contains(&text(strategy, "type")) {
        let shown = format!(
            "Unsupported value: apps.DeploymentStrategy{{Type:{:?}, \
             RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}}: supported values: \
             \"Recreate\", \"RollingUpdate\"",
            text(strategy, "type")
        );
        problems.found.push(FieldError::new(
            FieldErrorReason::NotSupported,
            "spec.strategy",
            shown,
        ));
    }
    if strategy["type"] == "Recreate" && strategy["rollingUpdate"].is_object() {
        problems.forbidden(
            "spec.strategy.rollingUpdate",
            "may not be specified when strategy `type` is 'Recreate'",
        );
    }
    let rolling = &strategy["rollingUpdate"];
    let path = "spec.strategy.rollingUpdate";
    amount(&rolling["maxUnavailable"], &format!("{path}.maxUnavailable"), problems);
    amount(&rolling["maxSurge"], &format!("{path}.maxSurge"), problems);
    if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
        problems.invalid_text(
            "spec.strategy.rollingUpdate.maxUnavailable",
            &go_text::int_or_string(&rolling["maxUnavailable"]),
            "may not be 0 when `maxSurge` is 0",
        );
    }
    let path = format!("{path}.maxUnavailable");
    not_more_than_all(&rolling["maxUnavailable"], &path, problems);
    let deadline = spec["progressDeadlineSeconds"].as_i64();
    let ready = spec["minReadySeconds"].as_i64().unwrap_or_default();
    problems.not_negative("spec.progressDeadlineSeconds", &spec["progressDeadlineSeconds"]);
    if deadline.is_some_and(|deadline| deadline <= ready) {
        problems.invalid(
            "spec.progressDeadlineSeconds",
            &spec["progressDeadlineSeconds"],
            "must be greater than minReadySeconds",
        );
    }
}

/// The template of pods with these restart policies.
pub(super) fn template(
    template: &Value,
    path: &str,
    restart_policies: &[&str],
    problems: &mut Problems,
) {
    let spec_path = format!("{path}.spec");
    let labels = &template["metadata"]["labels"];
    crate::meta::validate_labels(labels, &format!("{path}.labels"), &mut problems.found);
    pod_spec::check(&template["spec"], &spec_path, problems);
    let policy = &template["spec"]["restartPolicy"];
    let path = format!("{spec_path}.restartPolicy");
    if policy == "Always" && !restart_policies.contains(&"Always") {
        problems.required(&path, "valid values: \"OnFailure\", \"Never\"");
    } else {
        problems.one_of(&path, policy, restart_policies);
    }
    if restart_policies == ["Always"] && !template["spec"]["activeDeadlineSeconds"].is_null() {
        let path = format!("{spec_path}.activeDeadlineSeconds");
        problems.forbidden(&path, "activeDeadlineSeconds in ReplicaSet is not Supported");
    }
}

/// A number or a percentage of pods.
pub(super) fn amount(value: &Value, path: &str, problems: &mut Problems) {
    match value.as_str() {
        Some(text) => {
            let digits = text.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                let detail = "a valid percent string must be a numeric string followed by an \
                              ending '%' (e.g. '1%',  or '93%', regex used for validation is \
                              '[0-9]+%')";
                problems.invalid_text(path, &go_text::int_or_string(value), detail);
            }
        }
        None => problems.not_negative(path, value),
    }
}

/// Not more than all of them.
pub(super) fn not_more_than_all(value: &Value, path: &str, problems: &mut Problems) {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<u64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        let shown = go_text::int_or_string(value);
        problems.invalid_text(path, &shown, "must not be greater than 100%");
    }
}

fn stateful_set(spec: &Value, problems: &mut Problems) {
    let strategy = &spec["updateStrategy"];
    match text(strategy, "type") {
        "RollingUpdate" => {
            let partition = &strategy["rollingUpdate"]["partition"];
            problems.not_negative("spec.updateStrategy.rollingUpdate.partition", partition);
        }
        "OnDelete" => {}
        other => {
            let shown = format!(
                "apps.StatefulSetUpdateStrategy{{Type:{other:?}, \
                 RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)(nil)}}"
            );
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            problems.invalid_text("spec.updateStrategy", &shown, detail);
        }
    }
    problems.not_negative("spec.ordinals.start", &spec["ordinals"]["start"]);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for field in ["whenDeleted", "whenScaled"] {
        let path = "spec.persistentVolumeClaimRetentionPolicy";
        problems.one_of_if_set(retention, path, field, &["Retain", "Delete"]);
    }
}

fn daemon_set(spec: &Value, problems: &mut Problems) {
    let strategy = &spec["updateStrategy"];
    let path = "spec.updateStrategy.rollingUpdate";
    let kind = text(strategy, "type");
    if !matches!(kind, "RollingUpdate" | "OnDelete") {
        let shown = format!(
            "Unsupported value: apps.DaemonSetUpdateStrategy{{Type:{kind:?}, \
             RollingUpdate:(*apps.RollingUpdateDaemonSet)(nil)}}: supported values: \
             \"RollingUpdate\", \"OnDelete\""
        );
        let reason = FieldErrorReason::NotSupported;
        problems.found.push(FieldError::new(reason, "spec.updateStrategy", shown));
        return;
    }
    let rolling = &strategy["rollingUpdate"];
    if kind == "RollingUpdate" && rolling.is_object() {
        for field in ["maxUnavailable", "maxSurge"] {
            let path = format!("{path}.{field}");
            amount(&rolling[field], &path, problems);
            not_more_than_all(&rolling[field], &path, problems);
        }
        if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
            let path = format!("{path}.maxUnavailable");
            problems.required(&path, "cannot be 0 when maxSurge is 0");
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text == "0%",
        _ => false,
    }
}

pub(super) fn update(resource: &str, object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    match resource {
        "deployments" | "replicasets" | "daemonsets"
            if spec["selector"] != old_spec["selector"] =>
        {
            let shown = go_text::label_selector(&spec["selector"]);
            problems.invalid_text("spec.selector", &shown, "field is immutable");
        }
        "statefulsets" => stateful_set_update(spec, old_spec, problems),
        "jobs" => job_update(spec, old_spec, problems),
        _ => {}
    }
}

fn stateful_set_update(spec: &Value, old: &Value, problems: &mut Problems) {
    let fixed = |spec: &Value| {
        let mut fixed = spec.clone();
        let changeable = [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ];
        if let Some(fields) = fixed.as_object_mut() {
            fields.retain(|key, _| !changeable.contains(&key.as_str()));
        }
        fixed
    };
    if fixed(spec) != fixed(old) {
        problems.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
             'template', 'updateStrategy', 'revisionHistoryLimit', \
             'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

fn job_update(spec: &Value, old: &Value, problems: &mut Problems) {
    let is_elastic =
        spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"];
    if !is_elastic {
        problems.immutable("spec.completions", &spec["completions"], &old["completions"]);
    }
    if spec["selector"] != old["selector"] {
        let shown = go_text::label_selector(&spec["selector"]);
        problems.invalid_text("spec.selector", &shown, "field is immutable");
    }
    // Scheduling directives of a suspended job may change; everything else may not.
    let is_suspended = old["suspend"] == true;
    let fixed = |template: &Value| {
        let mut fixed = template.clone();
        if let Some(metadata) = fixed["metadata"].as_object_mut() {
            metadata.retain(|key, _| !matches!(key.as_str(), "labels" | "annotations"));
        }
        if let Some(spec) = fixed["spec"].as_object_mut() {
            let directives = ["nodeSelector", "tolerations", "affinity", "schedulingGates"];
            spec.retain(|key, _| !directives.contains(&key.as_str()));
        }
        fixed
    };
    let is_changed = match is_suspended {
        true => fixed(&spec["template"]) != fixed(&old["template"]),
        false => spec["template"] != old["template"],
    };
    if is_changed {
        problems.immutable("spec.template", &spec["template"], &old["template"]);
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"] {
        problems.immutable(&format!("spec.{field}"), &spec[field], &old[field]);
    }
}

/// Counters of a status cannot exceed the replicas that they count.
pub(super) fn status(resource: &str, object: &Value, problems: &mut Problems) {
    let status = &object["status"];
    let counters: &[&str] = match resource {
        "deployments" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "replicasets" => &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        "statefulsets" => &["readyReplicas", "currentReplicas", "updatedReplicas"],
        _ => return,
    };
    let total = status["replicas"].as_i64().unwrap_or_default();
    for counter in counters.iter().chain(&["replicas", "observedGeneration"]) {
        problems.not_negative(&format!("status.{counter}"), &status[*counter]);
    }
    for counter in counters {
        if status[*counter].as_i64().unwrap_or_default() > total {
            problems.invalid(
                &format!("status.{counter}"),
                &status[*counter],
                "cannot be greater than status.replicas",
            );
        }
    }
    let (available, ready) = (&status["availableReplicas"], &status["readyReplicas"]);
    if available.as_i64().unwrap_or_default() > ready.as_i64().unwrap_or_default()
        && resource != "statefulsets"
    {
        problems.invalid(
            "status.availableReplicas",
            available,
            "cannot be greater than readyReplicas",
        );
    }
}
