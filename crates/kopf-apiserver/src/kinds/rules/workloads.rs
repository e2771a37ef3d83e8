//! Rules of the kinds that run pods, and of autoscalers.

use serde_json::Value;

use super::{Problems, go_text, labels, pod_spec};
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
            template(&spec["template"], "spec.template", &["Always"], problems);
        }
        "jobs" => job(spec, "spec", problems),
        "cronjobs" => cron_job(spec, problems),
        "horizontalpodautoscalers" => autoscaler(spec, problems),
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
    if kind == "deployment" {
        deployment(spec, problems);
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
    let is_zero = |value: &Value| match value {
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text == "0%",
        _ => false,
    };
    let rolling = &strategy["rollingUpdate"];
    if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
        problems.invalid_text(
            "spec.strategy.rollingUpdate.maxUnavailable",
            &go_text::int_or_string(&rolling["maxUnavailable"]),
            "may not be 0 when `maxSurge` is 0",
        );
    }
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

fn template(template: &Value, path: &str, restart_policies: &[&str], problems: &mut Problems) {
    let spec_path = format!("{path}.spec");
    pod_spec::check(&template["spec"], &spec_path, problems);
    let policy = &template["spec"]["restartPolicy"];
    let path = format!("{spec_path}.restartPolicy");
    if policy == "Always" && !restart_policies.contains(&"Always") {
        problems.required(&path, "valid values: \"OnFailure\", \"Never\"");
    } else {
        problems.one_of(&path, policy, restart_policies);
    }
}

fn job(spec: &Value, path: &str, problems: &mut Problems) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ] {
        problems.not_negative(&format!("{path}.{field}"), &spec[field]);
    }
    let selector = &spec["selector"];
    let template_labels = &spec["template"]["metadata"]["labels"];
    if selector.is_object() && !labels::selects(selector, template_labels) {
        problems.invalid_text(
            &format!("{path}.template.metadata.labels"),
            &go_text::string_map(template_labels),
            "`selector` does not match template `labels`",
        );
    }
    let indexed = spec["completionMode"] == "Indexed";
    if indexed && spec["completions"].is_null() {
        problems.required(&format!("{path}.completions"), "when completion mode is Indexed");
    }
    template(&spec["template"], &format!("{path}.template"), &["OnFailure", "Never"], problems);
}

fn cron_job(spec: &Value, problems: &mut Problems) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        problems.required("spec.schedule", "");
    } else if !schedule.starts_with('@') && schedule.split_whitespace().count() != 5 {
        let found = schedule.split_whitespace().count();
        let detail = format!("expected exactly 5 fields, found {found}: [{schedule}]");
        problems.invalid("spec.schedule", &spec["schedule"], &detail);
    }
    problems.one_of(
        "spec.concurrencyPolicy",
        &spec["concurrencyPolicy"],
        &["Allow", "Forbid", "Replace"],
    );
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit", "startingDeadlineSeconds"]
    {
        problems.not_negative(&format!("spec.{field}"), &spec[field]);
    }
    let template_path = "spec.jobTemplate.spec.template";
    let pod = &spec["jobTemplate"]["spec"]["template"];
    template(pod, template_path, &["OnFailure", "Never"], problems);
}

fn autoscaler(spec: &Value, problems: &mut Problems) {
    let minimum = spec["minReplicas"].as_i64().unwrap_or(1);
    let maximum = spec["maxReplicas"].as_i64().unwrap_or_default();
    if minimum < 1 {
        problems.invalid(
            "spec.minReplicas",
            &spec["minReplicas"],
            "must be greater than or equal to 1",
        );
    }
    if maximum < 1 {
        problems.invalid("spec.maxReplicas", &spec["maxReplicas"], "must be greater than 0");
    }
    if maximum < minimum {
        problems.invalid(
            "spec.maxReplicas",
            &spec["maxReplicas"],
            "must be greater than or equal to `minReplicas`",
        );
    }
    for field in ["kind", "name"] {
        if text(&spec["scaleTargetRef"], field).is_empty() {
            problems.required(&format!("spec.scaleTargetRef.{field}"), "");
        }
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
    if !is_suspended && spec["template"] != old["template"] {
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
