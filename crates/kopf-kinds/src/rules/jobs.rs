//! Rules of jobs.

use std::collections::HashSet;

use serde_json::Value;

use super::workloads::template;
use super::{Problems, go_text, labels};
use crate::fields::{list, text};
use crate::go_structs;
use crate::names::{label_problems, qualified_name_problems, subdomain_problems};

const RESTART_POLICIES: [&str; 2] = ["OnFailure", "Never"];
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const LABELS_PATH: &str = "spec.template.metadata.labels";
const MANAGER_LENGTH_MAX: usize = 63;
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Above this number of completions, the other limits are lower.
const MANY_COMPLETIONS: i64 = 100_000;
const PARALLELISM_MAX_OF_MANY: i64 = 10_000;
const FAILED_INDEXES_MAX_OF_MANY: i64 = 10_000;
const FAILURE_RULES_MAX: usize = 20;
const CONDITION_PATTERNS_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const SUCCESS_RULES_MAX: usize = 20;

/// The errors of a job; an update validates the spec a second time.
pub(super) fn job(object: &Value, is_update: bool, problems: &mut Problems) {
    let spec = &object["spec"];
    generated_selector(object, problems);
    for _ in 0..=usize::from(is_update) {
        whole_spec(spec, problems);
    }
    let completions = spec["completions"].as_i64().unwrap_or_default();
    if spec["completionMode"] == "Indexed" && completions > 0 {
        let name = text(&object["metadata"], "name");
        let host = format!("{name}-{}", completions - 1);
        if !label_problems(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            problems.invalid("metadata.name", &name.into(), &detail);
        }
    }
}

/// Checks the generated labels and the selector for them.
fn generated_selector(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let selector = &spec["selector"];
    if spec["manualSelector"] == true || selector.is_null() {
        return;
    }
    let metadata = &object["metadata"];
    let expected = serde_json::json!({
        "controller-uid": metadata["uid"],
        "job-name": metadata["name"],
        "batch.kubernetes.io/controller-uid": metadata["uid"],
        "batch.kubernetes.io/job-name": metadata["name"],
    });
    let labels = &spec["template"]["metadata"]["labels"];
    for (key, value) in expected.as_object().into_iter().flatten() {
        let path = format!("{LABELS_PATH}[{key}]");
        let detail = format!("must be '{}'", value.as_str().unwrap_or_default());
        match labels.get(key) {
            None => problems.required(&path, &detail),
            Some(actual) if actual != value => {
                problems.invalid_text(&path, &go_text::string_map(labels), &detail);
            }
            Some(_) => {}
        }
    }
    if labels::is_valid(selector) && !labels::selects(selector, &expected) {
        let shown = go_text::label_selector(selector);
        problems.invalid_text("spec.selector", &shown, "`selector` not auto-generated");
    }
}

fn whole_spec(spec: &Value, problems: &mut Problems) {
    self::spec(spec, "spec", problems);
    let selector = &spec["selector"];
    if selector.is_null() {
        problems.required("spec.selector", "");
    } else {
        labels::check(selector, "spec.selector", problems);
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let selects_nothing =
        selector.is_null() || (labels::is_valid(selector) && !labels::selects(selector, labels));
    if selects_nothing {
        let shown = go_text::string_map(labels);
        let detail = "`selector` does not match template `labels`";
        problems.invalid_text(LABELS_PATH, &shown, detail);
    }
}

/// Checks the spec of a job, also in the template of a cron job.
pub(super) fn spec(spec: &Value, path: &str, problems: &mut Problems) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        problems.not_negative(&format!("{path}.{field}"), &spec[field]);
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        let detail = "when maxFailedIndexes is specified";
        problems.required(&format!("{path}.backoffLimitPerIndex"), detail);
    }
    if let Some(manager) = spec["managedBy"].as_str() {
        let path = format!("{path}.managedBy");
        domain_path(manager, &path, problems);
        if manager.len() > MANAGER_LENGTH_MAX {
            problems.too_long(&path, MANAGER_LENGTH_MAX);
        }
    }
    problems.one_of_if_set(spec, path, "completionMode", &["NonIndexed", "Indexed"]);
    match text(spec, "completionMode") {
        "Indexed" => indexed(spec, path, problems),
        "" | "NonIndexed" => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if !spec[field].is_null() {
                    let detail = "requires indexed completion mode";
                    problems.invalid(&format!("{path}.{field}"), &spec[field], detail);
                }
            }
        }
        _ => {}
    }
    let policy = &spec["podFailurePolicy"];
    if policy.is_object() {
        failure_policy(spec, &format!("{path}.podFailurePolicy.rules"), problems);
    }
    if spec["successPolicy"].is_object() && spec["completionMode"] != "Indexed" {
        let shown = go_structs::printed("batch.SuccessPolicy", &spec["successPolicy"]);
        let detail = "requires indexed completion mode";
        problems.invalid_text(&format!("{path}.successPolicy"), &shown, detail);
    } else if spec["successPolicy"].is_object() {
        success_policy(spec, &format!("{path}.successPolicy.rules"), problems);
    }
    let replacements: &[&str] =
        if policy.is_object() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    problems.one_of_if_set(spec, path, "podReplacementPolicy", replacements);
    template(&spec["template"], &format!("{path}.template"), &RESTART_POLICIES, problems);
    let restart = &spec["template"]["spec"]["restartPolicy"];
    if policy.is_object() && restart == "OnFailure" {
        let detail = "only \"Never\" is supported when podFailurePolicy is specified";
        problems.invalid(&format!("{path}.template.spec.restartPolicy"), restart, detail);
    }
}

/// Checks a path with a domain, such as `acme.io/foo`.
pub(super) fn domain_path(text: &str, path: &str, problems: &mut Problems) {
    if text.is_empty() {
        problems.required(path, "");
        return;
    }
    let (host, rest) = text.split_once('/').unwrap_or_default();
    if host.is_empty() || rest.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        problems.invalid(path, &text.into(), detail);
        return;
    }
    for problem in subdomain_problems(host) {
        problems.invalid(path, &host.into(), &problem);
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(is_legal) {
        let detail =
            r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        problems.invalid(path, &rest.into(), detail);
    }
}

fn indexed(spec: &Value, path: &str, problems: &mut Problems) {
    let number = |field: &str| spec[field].as_i64();
    let mut refuse = |field: &str, detail: &str| {
        problems.invalid(&format!("{path}.{field}"), &spec[field], detail);
    };
    let (parallelism, failures) = (number("parallelism"), number("maxFailedIndexes"));
    let completions = number("completions");
    if parallelism.is_some_and(|number| number > PARALLELISM_MAX) {
        let detail = format!(
            "must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed"
        );
        refuse("parallelism", &detail);
    }
    if completions.is_some_and(|all| failures.is_some_and(|failures| failures > all)) {
        refuse("maxFailedIndexes", "must be less than or equal to completions");
    }
    if failures.is_some_and(|number| number > FAILED_INDEXES_MAX) {
        refuse("maxFailedIndexes", &format!("must be less than or equal to {FAILED_INDEXES_MAX}"));
    }
    let are_many = completions.is_some_and(|number| number > MANY_COMPLETIONS)
        && number("backoffLimitPerIndex").is_some();
    let of_many = |most: i64| {
        format!(
            "must be less than or equal to {most} when completions are above {MANY_COMPLETIONS} \
             and used with backoff limit per index"
        )
    };
    if are_many && parallelism.is_some_and(|number| number > PARALLELISM_MAX_OF_MANY) {
        refuse("parallelism", &of_many(PARALLELISM_MAX_OF_MANY));
    }
    if are_many && failures.is_some_and(|number| number > FAILED_INDEXES_MAX_OF_MANY) {
        refuse("maxFailedIndexes", &of_many(FAILED_INDEXES_MAX_OF_MANY));
    }
    if are_many && failures.is_none() {
        let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
        problems.required(&format!("{path}.maxFailedIndexes"), &detail);
    }
    if completions.is_none() {
        problems.required(&format!("{path}.completions"), "when completion mode is Indexed");
    }
}

fn failure_policy(spec: &Value, path: &str, problems: &mut Problems) {
    let rules = list(&spec["podFailurePolicy"], "rules");
    if rules.len() > FAILURE_RULES_MAX {
        problems.too_many(path, rules.len(), FAILURE_RULES_MAX);
    }
    let pod = &spec["template"]["spec"];
    let containers: HashSet<&str> = list(pod, "containers")
        .iter()
        .chain(list(pod, "initContainers"))
        .map(|container| text(container, "name"))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let action = format!("{path}.action");
        match text(rule, "action") {
            "" => {
                let detail = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
                problems.required(&action, detail);
            }
            "FailIndex" if spec["backoffLimitPerIndex"].is_null() => {
                let detail = "requires the backoffLimitPerIndex to be set";
                problems.invalid(&action, &rule["action"], detail);
            }
            _ => problems.one_of(&action, &rule["action"], &ACTIONS),
        }
        let (codes, conditions) = (&rule["onExitCodes"], list(rule, "onPodConditions"));
        if codes.is_object() {
            exit_codes(codes, &format!("{path}.onExitCodes"), &containers, problems);
        }
        pod_conditions(conditions, &format!("{path}.onPodConditions"), problems);
        if codes.is_object() && !conditions.is_empty() {
            let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
            problems.invalid_omitted(&path, detail);
        } else if !codes.is_object() && conditions.is_empty() {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            problems.invalid_omitted(&path, detail);
        }
    }
}

fn exit_codes(codes: &Value, path: &str, containers: &HashSet<&str>, problems: &mut Problems) {
    let operator = format!("{path}.operator");
    match text(codes, "operator") {
        "" => problems.required(&operator, "valid values: [\"In\" \"NotIn\"]"),
        _ => problems.one_of(&operator, &codes["operator"], &["In", "NotIn"]),
    }
    if codes["containerName"].as_str().is_some_and(|name| !containers.contains(name)) {
        let detail = "must be one of the container or initContainer names in the pod template";
        problems.invalid(&format!("{path}.containerName"), &codes["containerName"], detail);
    }
    let values: Vec<i64> = list(codes, "values").iter().filter_map(Value::as_i64).collect();
    let path = format!("{path}.values");
    let shown = go_text::int32_list(&codes["values"]);
    if values.is_empty() {
        problems.invalid_text(&path, &shown, "at least one value is required");
    } else if values.len() > EXIT_CODES_MAX {
        problems.too_many(&path, values.len(), EXIT_CODES_MAX);
    }
    let mut seen = HashSet::new();
    for (index, value) in values.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if codes["operator"] == "In" && *value == 0 {
            problems.invalid(&path, &0.into(), "must not be 0 for the In operator");
        }
        if !seen.insert(value) {
            problems.duplicate(&path, &(*value).into());
        }
    }
    if !values.is_sorted() {
        problems.invalid_text(&path, &shown, "must be ordered");
    }
}

fn pod_conditions(patterns: &[Value], path: &str, problems: &mut Problems) {
    if patterns.len() > CONDITION_PATTERNS_MAX {
        problems.too_many(path, patterns.len(), CONDITION_PATTERNS_MAX);
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = format!("{path}[{index}]");
        for problem in qualified_name_problems(text(pattern, "type")) {
            problems.invalid(&format!("{path}.type"), &text(pattern, "type").into(), &problem);
        }
        let status = format!("{path}.status");
        match text(pattern, "status") {
            "" => problems.required(&status, "valid values: [\"False\" \"True\" \"Unknown\"]"),
            _ => problems.one_of(&status, &pattern["status"], &["False", "True", "Unknown"]),
        }
    }
}

/// A success policy as Go prints it.
fn success_policy(spec: &Value, path: &str, problems: &mut Problems) {
    let rules = list(&spec["successPolicy"], "rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        problems.required(path, detail);
    }
    if rules.len() > SUCCESS_RULES_MAX {
        problems.too_many(path, rules.len(), SUCCESS_RULES_MAX);
    }
    let completions = spec["completions"].as_i64().unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (count, indexes) = (&rule["succeededCount"], &rule["succeededIndexes"]);
        if count.is_null() && indexes.is_null() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            problems.required(&path, detail);
        }
        let mut total = 0;
        if let Some(text) = indexes.as_str() {
            match count_indexes(text, completions) {
                Ok(found) => total = found,
                Err(problem) => {
                    let detail = format!("error parsing succeededIndexes: {problem}");
                    problems.invalid(&format!("{path}.succeededIndexes"), indexes, &detail);
                }
            }
        }
        let path = format!("{path}.succeededCount");
        problems.not_negative(&path, count);
        let wanted = count.as_i64().unwrap_or_default();
        if wanted > completions {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            problems.invalid(&path, count, &detail);
        }
        if !indexes.is_null() && wanted > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified \
                 succeededIndexes field)"
            );
            problems.invalid(&path, count, &detail);
        }
    }
}

/// The number of indexes in a text such as `0,2-4`.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let number = |text: &str| -> Result<i64, String> {
        let index: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        match index >= completions {
            true => Err(format!("too large index: {text:?}")),
            false => Ok(index),
        }
    };
    let unordered = |previous: i64, current: i64| {
        Err(format!("non-increasing order, previous: {previous}, current: {current}"))
    };
    let mut last: Option<i64> = None;
    let mut total = 0;
    for interval in text.split(',') {
        let parts: Vec<&str> = interval.split('-').collect();
        if parts.len() > 2 {
            return Err(format!(
                "the fragment {interval:?} violates the requirement that an index interval can \
                 have at most two parts separated by '-'"
            ));
        }
        let first = number(parts[0])?;
        let end = parts.get(1).map_or(Ok(first), |part| number(part))?;
        if parts.len() > 1 && first >= end {
            return unordered(first, end);
        }
        if let Some(last) = last.filter(|last| *last >= first) {
            return unordered(last, first);
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// Checks the immutable fields of a job.
pub(super) fn update(object: &Value, old: &Value, problems: &mut Problems) {
    let may_move = old["spec"]["suspend"] == true && old["status"]["startTime"].is_null();
    let (spec, old) = (&object["spec"], &old["spec"]);
    if spec["completionMode"] != "Indexed" {
        problems.immutable("spec.completions", &spec["completions"], &old["completions"]);
    } else if spec["completions"] != old["completions"]
        && !spec["completions"].is_null()
        && spec["completions"] != spec["parallelism"]
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        problems.invalid("spec.completions", &spec["completions"], detail);
    }
    if spec["selector"] != old["selector"] {
        let shown = go_text::label_selector(&spec["selector"]);
        problems.invalid_text("spec.selector", &shown, "field is immutable");
    }
    // The scheduling constraints of a job's pods may change until it starts; everything else may
    // not.
    let fixed = |template: &Value| {
        let mut fixed = template.clone();
        if let Some(metadata) = fixed["metadata"].as_object_mut().filter(|_| may_move) {
            metadata.retain(|key, _| !matches!(key.as_str(), "labels" | "annotations"));
        }
        if let Some(spec) = fixed["spec"].as_object_mut().filter(|_| may_move) {
            let directives = ["nodeSelector", "tolerations", "schedulingGates"];
            spec.retain(|key, _| !directives.contains(&key.as_str()));
            let affinity = spec.get_mut("affinity").and_then(Value::as_object_mut);
            let is_empty = affinity.is_some_and(|affinity| {
                affinity.shift_remove("nodeAffinity");
                affinity.is_empty()
            });
            if is_empty {
                spec.shift_remove("affinity");
            }
        }
        fixed
    };
    if fixed(&spec["template"]) != fixed(&old["template"]) {
        let shown = go_structs::printed("core.PodTemplateSpec", &spec["template"]);
        problems.invalid_text("spec.template", &shown, "field is immutable");
    }
    let failure = "podFailurePolicy";
    if spec[failure] != old[failure] && spec[failure].is_object() {
        let shown = go_structs::printed("batch.PodFailurePolicy", &spec[failure]);
        problems.invalid_text("spec.podFailurePolicy", &shown, "field is immutable");
    } else {
        problems.immutable("spec.podFailurePolicy", &spec[failure], &old[failure]);
    }
    for field in ["completionMode", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        problems.immutable(&format!("spec.{field}"), &spec[field], &old[field]);
    }
}
