//! Rules of jobs, cron jobs and autoscalers.

use serde_json::Value;

use super::workloads::template;
use super::{Problems, go_text, labels, resources};
use crate::kinds::fields::{is_empty, list, text};

/// Suffixes of jobs are eleven characters long.
const CRON_JOB_NAME_MAX: usize = 52;
const RESTART_POLICIES: [&str; 2] = ["OnFailure", "Never"];
const METRIC_TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn job(spec: &Value, problems: &mut Problems) {
    job_spec(spec, "spec", problems);
    let selector = &spec["selector"];
    let labels_path = "spec.template.metadata.labels";
    let template_labels = &spec["template"]["metadata"]["labels"];
    if selector.is_null() {
        problems.required("spec.selector", "");
    } else if spec["manualSelector"] != true {
        let uid = &template_labels["batch.kubernetes.io/controller-uid"];
        let is_generated = selector["matchLabels"].as_object().is_some_and(|labels| {
            labels.len() == 1 && labels.get("batch.kubernetes.io/controller-uid") == Some(uid)
        });
        if !is_generated && !uid.is_null() {
            let shown = go_text::label_selector(selector);
            problems.invalid_text("spec.selector", &shown, "`selector` not auto-generated");
        }
    }
    if selector.is_null() || !labels::selects(selector, template_labels) {
        let shown = go_text::string_map(template_labels);
        let detail = "`selector` does not match template `labels`";
        problems.invalid_text(labels_path, &shown, detail);
    }
}

fn job_spec(spec: &Value, path: &str, problems: &mut Problems) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
    ] {
        problems.not_negative(&format!("{path}.{field}"), &spec[field]);
    }
    let is_indexed = spec["completionMode"] == "Indexed";
    if !spec["completionMode"].is_null() {
        problems.one_of_if_set(spec, path, "completionMode", &["NonIndexed", "Indexed"]);
        if is_indexed && spec["completions"].is_null() {
            let detail = "when completion mode is Indexed";
            problems.required(&format!("{path}.completions"), detail);
        }
    }
    if !is_indexed && !spec["backoffLimitPerIndex"].is_null() {
        let at = format!("{path}.backoffLimitPerIndex");
        let detail = "requires indexed completion mode";
        problems.invalid(&at, &spec["backoffLimitPerIndex"], detail);
    }
    let policy = &spec["podFailurePolicy"];
    for (index, rule) in list(policy, "rules").iter().enumerate() {
        failure_rule(rule, &format!("{path}.podFailurePolicy.rules[{index}]"), problems);
    }
    let replacements: &[&str] =
        if policy.is_object() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    problems.one_of_if_set(spec, path, "podReplacementPolicy", replacements);
    template(&spec["template"], &format!("{path}.template"), &RESTART_POLICIES, problems);
}

fn failure_rule(rule: &Value, path: &str, problems: &mut Problems) {
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    if is_empty(rule, "action") {
        problems.required(&format!("{path}.action"), "");
    } else {
        problems.one_of(&format!("{path}.action"), &rule["action"], &actions);
    }
    let has_codes = rule["onExitCodes"].is_object();
    let has_conditions = !is_empty(rule, "onPodConditions");
    if has_codes && has_conditions {
        let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
        problems.found.push(crate::FieldError::new(
            crate::FieldErrorReason::Invalid,
            path,
            format!("Invalid value: {detail}"),
        ));
    } else if !has_codes && !has_conditions {
        let detail = "specifying one of OnExitCodes and OnPodConditions is required";
        problems.found.push(crate::FieldError::new(
            crate::FieldErrorReason::Invalid,
            path,
            format!("Invalid value: {detail}"),
        ));
    }
}

pub(super) fn cron_job(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    schedule(spec, problems);
    problems.not_negative("spec.startingDeadlineSeconds", &spec["startingDeadlineSeconds"]);
    if let Some(zone) = spec["timeZone"].as_str() {
        time_zone(zone, problems);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    problems.one_of("spec.concurrencyPolicy", &spec["concurrencyPolicy"], &policies);
    job_spec(&spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", problems);
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        problems.not_negative(&format!("spec.{field}"), &spec[field]);
    }
    if text(&object["metadata"], "name").len() > CRON_JOB_NAME_MAX {
        let detail = format!("must be no more than {CRON_JOB_NAME_MAX} characters");
        problems.invalid("metadata.name", &object["metadata"]["name"], &detail);
    }
}

fn schedule(spec: &Value, problems: &mut Problems) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        problems.required("spec.schedule", "");
        return;
    }
    if let Err(problem) = parse_schedule(schedule) {
        problems.invalid("spec.schedule", &spec["schedule"], &problem);
    }
    if schedule.contains("TZ") {
        let detail = if is_empty(spec, "timeZone") {
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        } else {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        };
        problems.invalid("spec.schedule", &spec["schedule"], detail);
    }
}

/// Whether a text is a schedule of five fields, in the words of upstream's parser.
fn parse_schedule(text: &str) -> Result<(), String> {
    let text = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(rest) => rest.split_once(' ').map_or("", |(_, schedule)| schedule.trim()),
        None => text,
    };
    if let Some(descriptor) = text.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        let is_interval = descriptor.starts_with("every ");
        return match known.contains(&descriptor) || is_interval {
            true => Ok(()),
            false => Err(format!("unrecognized descriptor: {text}")),
        };
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!("expected exactly 5 fields, found {}: [{text}]", fields.len()));
    }
    let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    for ((index, field), (least, most)) in fields.iter().enumerate().zip(bounds) {
        for part in field.split(',') {
            check_range(part, index, least, most)?;
        }
    }
    Ok(())
}

fn check_range(text: &str, index: usize, least: u32, most: u32) -> Result<(), String> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let number = |text: &str| -> Result<u32, String> {
        const MONTHS: [&str; 12] =
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let lower = text.to_lowercase();
        let named = match index {
            3 => MONTHS.iter().position(|name| *name == lower).map(|at| at + 1),
            4 => DAYS.iter().position(|name| *name == lower),
            _ => None,
        };
        if let Some(number) = named {
            return Ok(u32::try_from(number).unwrap_or_default());
        }
        text.parse().map_err(|_| {
            format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
            )
        })
    };
    let (start, end) = match range {
        "*" | "?" => (least, most),
        _ => match range.split_once('-') {
            Some((start, end)) => (number(start)?, number(end)?),
            None if step.is_some() => (number(range)?, most),
            None => (number(range)?, number(range)?),
        },
    };
    if let Some(step) = step
        && number(step)? == 0
    {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    Ok(())
}

fn time_zone(zone: &str, problems: &mut Problems) {
    let path = "spec.timeZone";
    if zone.is_empty() {
        problems.invalid(path, &zone.into(), "timeZone must be nil or non-empty string");
    } else if zone.eq_ignore_ascii_case("Local") {
        problems.invalid(
            path,
            &zone.into(),
            "timeZone must be an explicit time zone as defined \
            in https://www.iana.org/time-zones",
        );
    } else if jiff::tz::TimeZone::get(zone).is_err() {
        problems.invalid(path, &zone.into(), &format!("unknown time zone {zone}"));
    }
}

pub(super) fn autoscaler(spec: &Value, problems: &mut Problems) {
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
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        self::metric(metric, &format!("spec.metrics[{index}]"), problems);
    }
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            scaling(rules, &format!("spec.behavior.{direction}"), problems);
        }
    }
}

fn metric(metric: &Value, path: &str, problems: &mut Problems) {
    let kind = text(metric, "type");
    let source = match kind {
        "ContainerResource" => "containerResource",
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "" => {
            problems.required(&format!("{path}.type"), "must specify a metric source type");
            return;
        }
        _ => {
            // Upstream says so twice: about the type, and about its source.
            problems.one_of(&format!("{path}.type"), &metric["type"], &METRIC_TYPES);
            problems.one_of(&format!("{path}.type"), &metric["type"], &METRIC_TYPES);
            return;
        }
    };
    if !metric[source].is_object() {
        let detail = "must populate information for the given metric source";
        problems.required(&format!("{path}.{source}"), detail);
        return;
    }
    let target = &metric[source]["target"];
    if source == "resource" {
        let at = format!("{path}.resource.target.averageUtilization");
        let utilization = &target["averageUtilization"];
        if utilization.as_i64().is_some_and(|percent| percent < 1) {
            problems.invalid(&at, utilization, "must be greater than 0");
        }
        let has_value = resources::nanos(&target["averageValue"]).is_some();
        if utilization.is_null() && !has_value {
            let detail = "must set either a target raw value or a target utilization";
            problems.required(&at, detail);
        }
        if !utilization.is_null() && has_value {
            let at = format!("{path}.resource.target.averageValue");
            let detail = "may not set both a target raw value and a target utilization";
            problems.forbidden(&at, detail);
        }
    }
}

fn scaling(rules: &Value, path: &str, problems: &mut Problems) {
    problems.not_negative(
        &format!("{path}.stabilizationWindowSeconds"),
        &rules["stabilizationWindowSeconds"],
    );
    problems.one_of_if_set(rules, path, "selectPolicy", &["Disabled", "Max", "Min"]);
    if is_empty(rules, "policies") {
        problems.required(&format!("{path}.policies"), "must specify at least one Policy");
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        let path = format!("{path}.policies[{index}]");
        problems.one_of(&format!("{path}.type"), &policy["type"], &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            if policy[field].as_i64().unwrap_or_default() <= 0 {
                let at = format!("{path}.{field}");
                problems.invalid(&at, &policy[field], "must be greater than zero");
            }
        }
    }
}
