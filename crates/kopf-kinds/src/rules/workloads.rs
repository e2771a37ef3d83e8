//! Rules of workloads.

use serde_json::Value;

use super::{Problems, autoscalers, cron_jobs, go_text, jobs, labels, pod_annotations, pod_spec};
use crate::fields::{is_empty, text};
use crate::names::label_problems;
use crate::{FieldError, FieldErrorReason};

pub(super) fn check(resource: &str, object: &Value, old: Option<&Value>, problems: &mut Problems) {
    let spec = &object["spec"];
    match resource {
        "deployments" => deployment(spec, problems),
        "replicasets" => replica_set(spec, problems),
        "daemonsets" => daemon_set(spec, problems),
        "statefulsets" => stateful_set(spec, old.is_none(), problems),
        "replicationcontrollers" => replication_controller(spec, problems),
        "controllerrevisions" => {
            problems.not_negative("revision", &object["revision"]);
            let data = &object["data"];
            if old.is_none() && data.is_null() {
                problems.required("data", "data is mandatory");
            } else if old.is_none() && !data.is_object() {
                problems.required("data", "data must be a valid JSON object");
            }
        }
        "jobs" => jobs::job(object, old.is_some(), problems),
        "cronjobs" => cron_jobs::check(object, old, problems),
        "horizontalpodautoscalers" => autoscalers::check(object, old, problems),
        _ => {}
    }
}

fn replication_controller(spec: &Value, problems: &mut Problems) {
    problems.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    if is_empty(spec, "selector") {
        problems.required("spec.selector", "");
    }
    problems.not_negative("spec.replicas", &spec["replicas"]);
    let template = &spec["template"];
    if !template.is_object() {
        problems.required("spec.template", "");
        return;
    }
    let labels = &template["metadata"]["labels"];
    let mut wanted = spec["selector"].as_object().into_iter().flatten();
    if !wanted.all(|(key, value)| labels.get(key) == Some(value)) {
        problems.invalid_text(
            "spec.template.metadata.labels",
            &go_text::string_map(labels),
            "`selector` does not match template `labels`",
        );
    }
    self::template(template, "spec.template", &["Always"], problems);
    no_deadline(spec, "ReplicationController", problems);
}

fn replica_set(spec: &Value, problems: &mut Problems) {
    problems.not_negative("spec.replicas", &spec["replicas"]);
    problems.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    // The message is that of deployments.
    if selector(spec, "deployment", problems) {
        selected_template(spec, problems);
        template(&spec["template"], "spec.template", &["Always"], problems);
        no_deadline(spec, "ReplicaSet", problems);
    }
}

/// Checks a required selector; returns whether it is well-formed.
fn selector(spec: &Value, kind: &str, problems: &mut Problems) -> bool {
    let selector = &spec["selector"];
    if selector.is_null() {
        problems.required("spec.selector", "");
        return true;
    }
    labels::check(selector, "spec.selector", problems);
    let shown = go_text::label_selector(selector);
    if labels::is_empty(selector) {
        let detail = format!("empty selector is invalid for {kind}");
        problems.invalid_text("spec.selector", &shown, &detail);
    }
    let is_valid = labels::is_valid(selector);
    if !is_valid && kind == "statefulset" {
        problems.invalid_text("spec.selector", &shown, "");
    } else if !is_valid {
        problems.invalid_text("spec.selector", &shown, "invalid label selector");
    }
    is_valid
}

/// Checks that the labels of the template match the selector.
fn selected_template(spec: &Value, problems: &mut Problems) {
    let (selector, labels) = (&spec["selector"], &spec["template"]["metadata"]["labels"]);
    if selector.is_null() || !labels::selects(selector, labels) {
        problems.invalid_text(
            "spec.template.metadata.labels",
            &go_text::string_map(labels),
            "`selector` does not match template `labels`",
        );
    }
}

fn no_deadline(spec: &Value, kind: &str, problems: &mut Problems) {
    if !spec["template"]["spec"]["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        problems.forbidden("spec.template.spec.activeDeadlineSeconds", &detail);
    }
}

fn deployment(spec: &Value, problems: &mut Problems) {
    problems.not_negative("spec.replicas", &spec["replicas"]);
    if selector(spec, "deployment", problems) {
        selected_template(spec, problems);
        template(&spec["template"], "spec.template", &["Always"], problems);
        no_deadline(spec, "ReplicaSet", problems);
    }
    deployment_strategy(&spec["strategy"], problems);
    problems.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    problems.not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"]);
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

fn deployment_strategy(strategy: &Value, problems: &mut Problems) {
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
    if strategy["type"] != "RollingUpdate" {
        return;
    }
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
}

/// Checks a pod template with one of these restart policies.
pub(super) fn template(
    template: &Value,
    path: &str,
    restart_policies: &[&str],
    problems: &mut Problems,
) {
    let spec_path = format!("{path}.spec");
    let labels = &template["metadata"]["labels"];
    crate::meta::validate_labels(labels, &format!("{path}.labels"), &mut problems.found);
    let annotations = &template["metadata"]["annotations"];
    let at = format!("{path}.annotations");
    crate::meta::validate_annotations(annotations, &at, &mut problems.found);
    pod_annotations::check(&template["metadata"], &template["spec"], &at, problems);
    pod_spec::check(&template["spec"], &spec_path, problems);
    let policy = &template["spec"]["restartPolicy"];
    let path = format!("{spec_path}.restartPolicy");
    if policy == "Always" && !restart_policies.contains(&"Always") {
        problems.required(&path, "valid values: \"OnFailure\", \"Never\"");
    } else {
        problems.one_of(&path, policy, restart_policies);
    }
}

/// Checks a number or a percentage of pods.
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

/// Checks that a percentage is at most 100 %.
pub(super) fn not_more_than_all(value: &Value, path: &str, problems: &mut Problems) {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<u64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        let shown = go_text::int_or_string(value);
        problems.invalid_text(path, &shown, "must not be greater than 100%");
    }
}

fn stateful_set(spec: &Value, is_new: bool, problems: &mut Problems) {
    match text(spec, "podManagementPolicy") {
        "" => problems.required("spec.podManagementPolicy", ""),
        "OrderedReady" | "Parallel" => {}
        _ => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            problems.invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], detail);
        }
    }
    stateful_strategy(&spec["updateStrategy"], problems);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for field in ["whenDeleted", "whenScaled"] {
        let path = "spec.persistentVolumeClaimRetentionPolicy";
        problems.one_of_if_set(retention, path, field, &["Retain", "Delete"]);
    }
    problems.not_negative("spec.replicas", &spec["replicas"]);
    problems.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    problems.not_negative("spec.ordinals.start", &spec["ordinals"]["start"]);
    if is_new && !is_empty(spec, "serviceName") {
        for problem in label_problems(text(spec, "serviceName")) {
            problems.invalid("spec.serviceName", &spec["serviceName"], &problem);
        }
    }
    let metadata = &spec["template"]["metadata"];
    if selector(spec, "statefulset", problems) {
        if spec["selector"].is_null() || !labels::is_empty(&spec["selector"]) {
            selected_template(spec, problems);
        }
        // The rest of the template is checked only when pods are created from it.
        let found = &mut problems.found;
        crate::meta::validate_labels(&metadata["labels"], "spec.template.labels", found);
        let path = "spec.template.annotations";
        crate::meta::validate_annotations(&metadata["annotations"], path, found);
    }
    let restart = &spec["template"]["spec"]["restartPolicy"];
    problems.one_of("spec.template.spec.restartPolicy", restart, &["Always"]);
    no_deadline(spec, "StatefulSet", problems);
}

fn stateful_strategy(strategy: &Value, problems: &mut Problems) {
    let rolling = &strategy["rollingUpdate"];
    let path = "spec.updateStrategy.rollingUpdate";
    let most = &rolling["maxUnavailable"];
    match text(strategy, "type") {
        "" => problems.required("spec.updateStrategy", ""),
        "OnDelete" if rolling.is_object() => {
            let shown = stateful_rolling(rolling);
            problems.invalid_text(path, &shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            problems.not_negative(&format!("{path}.partition"), &rolling["partition"]);
            let path = format!("{path}.maxUnavailable");
            amount(most, &path, problems);
            if !most.is_null() && is_zero(most) {
                problems.invalid_text(&path, &go_text::int_or_string(most), "cannot be 0");
            }
            not_more_than_all(most, &path, problems);
        }
        other => {
            let shown = format!(
                "apps.StatefulSetUpdateStrategy{{Type:{other:?}, \
                 RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)({})}}",
                if rolling.is_object() { "0xc000000000" } else { "nil" }
            );
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            problems.invalid_text("spec.updateStrategy", &shown, detail);
        }
    }
}

fn stateful_rolling(rolling: &Value) -> String {
    let most = if rolling["maxUnavailable"].is_null() { "nil" } else { "0xc000000000" };
    format!(
        "apps.RollingUpdateStatefulSetStrategy{{Partition:{}, \
         MaxUnavailable:(*intstr.IntOrString)({most})}}",
        rolling["partition"].as_i64().unwrap_or_default()
    )
}

fn daemon_set(spec: &Value, problems: &mut Problems) {
    let selector = &spec["selector"];
    if selector.is_object() {
        labels::check(selector, "spec.selector", problems);
    }
    if selector.is_null() || labels::is_valid(selector) {
        selected_template(spec, problems);
    }
    if selector.is_object() && labels::is_empty(selector) {
        let shown = go_text::label_selector(selector);
        problems.invalid_text("spec.selector", &shown, "empty selector is invalid for daemonset");
    }
    template(&spec["template"], "spec.template", &["Always"], problems);
    no_deadline(spec, "DaemonSet", problems);
    problems.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    daemon_strategy(&spec["updateStrategy"], problems);
    problems.not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"]);
}

fn daemon_strategy(strategy: &Value, problems: &mut Problems) {
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
    if kind != "RollingUpdate" {
        return;
    }
    if !rolling.is_object() {
        problems.required(path, "");
        return;
    }
    for field in ["maxUnavailable", "maxSurge"] {
        let path = format!("{path}.{field}");
        amount(&rolling[field], &path, problems);
        not_more_than_all(&rolling[field], &path, problems);
    }
    match (is_zero(&rolling["maxUnavailable"]), is_zero(&rolling["maxSurge"])) {
        (false, false) => {
            let shown = go_text::int_or_string(&rolling["maxSurge"]);
            let detail = "may not be set when maxUnavailable is non-zero";
            problems.invalid_text(&format!("{path}.maxSurge"), &shown, detail);
        }
        (true, true) => {
            let detail = "cannot be 0 when maxSurge is 0";
            problems.required(&format!("{path}.maxUnavailable"), detail);
        }
        _ => {}
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or(text);
            digits.parse::<i64>().unwrap_or_default() == 0
        }
        _ => true,
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
        "jobs" => jobs::update(object, old, problems),
        "controllerrevisions" if object["data"] != old["data"] => {
            let shown = go_text::raw_extension(&object["data"]);
            problems.invalid_text("data", &shown, "field is immutable");
        }
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

/// Checks that counters of a status are not negative and do not exceed the number of replicas.
pub(super) fn status(resource: &str, object: &Value, old: &Value, problems: &mut Problems) {
    let status = &object["status"];
    let (parts, others): (&[&str], &[&str]) = match resource {
        "deployments" => (
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
            &["unavailableReplicas", "terminatingReplicas", "collisionCount"],
        ),
        "replicasets" | "replicationcontrollers" => (
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            &["terminatingReplicas"],
        ),
        "statefulsets" => (
            &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
            &["collisionCount"],
        ),
        "daemonsets" => (&[], &DAEMON_COUNTS),
        _ => return,
    };
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    for field in parts.iter().chain(&["replicas", "observedGeneration"]).chain(others) {
        problems.not_negative(&format!("status.{field}"), &status[*field]);
    }
    for field in parts.iter().filter(|field| count(field) > count("replicas")) {
        let detail = "cannot be greater than status.replicas";
        problems.invalid(&format!("status.{field}"), &count(field).into(), detail);
    }
    if count("availableReplicas") > count("readyReplicas") {
        let detail = match resource {
            "statefulsets" => "cannot be greater than status.readyReplicas",
            _ => "cannot be greater than readyReplicas",
        };
        problems.invalid("status.availableReplicas", &count("availableReplicas").into(), detail);
    }
    let collisions = |object: &Value| object["status"]["collisionCount"].as_i64();
    let counts_collisions = matches!(resource, "deployments" | "statefulsets" | "daemonsets");
    let is_less =
        collisions(old).is_some_and(|before| collisions(object).is_none_or(|after| after < before));
    if counts_collisions && is_less {
        let shown = collisions(object).unwrap_or_default();
        problems.invalid("status.collisionCount", &shown.into(), "cannot be decremented");
    }
}

const DAEMON_COUNTS: [&str; 8] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];
