//! Defaults of the kinds that run pods, and of autoscalers.

use serde_json::{Value, json};

use super::pod_spec;
use crate::fields::{fill, fill_text, is_empty, items_mut, object_at, object_mut, present_mut};

pub(super) fn apply(resource: &str, object: &mut Value) {
    match resource {
        "deployments" => deployment(object),
        "replicasets" => {
            let Some(spec) = object_mut(object, "spec") else { return };
            fill(spec, "replicas", 1);
            template_of(spec);
        }
        "statefulsets" => stateful_set(object),
        "daemonsets" => daemon_set(object),
        "jobs" => job(object),
        "cronjobs" => cron_job(object),
        "horizontalpodautoscalers" => autoscaler(object),
        _ => {}
    }
}

fn template_of(spec: &mut Value) {
    if let Some(template) = object_mut(spec, "template") {
        pod_spec::template(template);
    }
}

pub(super) fn replication_controller(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|labels| !labels.is_null()) {
        if let Some(metadata) = object_mut(object, "metadata")
            && is_empty(metadata, "labels")
        {
            metadata["labels"] = labels.clone();
        }
        if let Some(spec) = object_mut(object, "spec")
            && is_empty(spec, "selector")
        {
            spec["selector"] = labels;
        }
    }
    let Some(spec) = object_mut(object, "spec") else { return };
    fill(spec, "replicas", 1);
    if let Some(template) = present_mut(spec, "template") {
        pod_spec::template(template);
    }
}

fn deployment(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = object_mut(spec, "strategy") {
        fill_text(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = object_mut(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", "25%");
            fill(rolling, "maxSurge", "25%");
        }
    }
    template_of(spec);
}

fn stateful_set(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    fill_text(spec, "podManagementPolicy", "OrderedReady");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = object_mut(spec, "updateStrategy") {
        if is_empty(strategy, "type") {
            strategy["type"] = "RollingUpdate".into();
            object_mut(strategy, "rollingUpdate");
        }
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = present_mut(strategy, "rollingUpdate")
        {
            fill(rolling, "partition", 0);
        }
    }
    if let Some(policy) = object_mut(spec, "persistentVolumeClaimRetentionPolicy") {
        fill_text(policy, "whenDeleted", "Retain");
        fill_text(policy, "whenScaled", "Retain");
    }
    template_of(spec);
    for claim in items_mut(spec, "volumeClaimTemplates") {
        super::volume_claim(claim);
        fill_text(claim, "kind", "PersistentVolumeClaim");
        fill_text(claim, "apiVersion", "v1");
    }
}

fn daemon_set(object: &mut Value) {
    if let Some(annotations) = object_at(object, &["metadata", "annotations"]) {
        fill_text(annotations, "deprecated.daemonset.template.generation", "1");
    }
    let Some(spec) = object_mut(object, "spec") else { return };
    fill(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = object_mut(spec, "updateStrategy") {
        fill_text(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = object_mut(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", 1);
            fill(rolling, "maxSurge", 0);
        }
        if let Some(rolling) = present_mut(strategy, "rollingUpdate") {
            fill(rolling, "maxSurge", 0);
        }
    }
    template_of(spec);
}

fn job(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|labels| !labels.is_null())
        && let Some(metadata) = object_mut(object, "metadata")
        && is_empty(metadata, "labels")
    {
        metadata["labels"] = labels;
    }
    let Some(spec) = object_mut(object, "spec") else { return };
    if is_empty(spec, "completions") && is_empty(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let per_index = !is_empty(spec, "backoffLimitPerIndex");
    fill(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    fill(spec, "manualSelector", false);
    let has_failure_policy = !is_empty(spec, "podFailurePolicy");
    let replacement = if has_failure_policy { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replacement);
    if let Some(policy) = present_mut(spec, "podFailurePolicy") {
        for rule in items_mut(policy, "rules") {
            items_mut(rule, "onPodConditions").for_each(|each| fill_text(each, "status", "True"));
        }
    }
    template_of(spec);
}

fn cron_job(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    fill_text(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    if let Some(job) = object_at(spec, &["jobTemplate", "spec"]) {
        template_of(job);
    }
}

const OTHER_METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

fn autoscaler(object: &mut Value) {
    let is_second_version = object["apiVersion"] == "autoscaling/v2";
    // The first version keeps its other metrics there.
    let metrics = object["metadata"]["annotations"][OTHER_METRICS].as_str().unwrap_or_default();
    let other_metrics: Value = serde_json::from_str(metrics).unwrap_or_default();
    let has_others = other_metrics.as_array().is_some_and(|metrics| !metrics.is_empty());
    let Some(spec) = object_mut(object, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if !is_second_version {
        if !has_others {
            fill(spec, "targetCPUUtilizationPercentage", 80);
        }
        return;
    }
    if is_empty(spec, "metrics") {
        spec["metrics"] = json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    }
    let Some(behavior) = present_mut(spec, "behavior") else { return };
    scaling_rules(
        behavior,
        "scaleUp",
        &json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]),
    );
    scaling_rules(
        behavior,
        "scaleDown",
        &json!([
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]),
    );
}

fn scaling_rules(behavior: &mut Value, name: &str, policies: &Value) {
    let Some(rules) = object_mut(behavior, name) else { return };
    if name == "scaleUp" {
        fill(rules, "stabilizationWindowSeconds", 0);
    }
    fill(rules, "selectPolicy", "Max");
    // An empty list is rejected later.
    fill(rules, "policies", policies.clone());
}
