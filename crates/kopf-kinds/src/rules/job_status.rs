//! Rules of the status of a job.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{Problems, go_text, jobs};
use crate::fields::{list, text};

const CONDITIONS: &str = "status.conditions";

/// A job before or after the write.
struct Job<'a> {
    spec: &'a Value,
    status: &'a Value,
}

impl<'a> Job<'a> {
    fn of(object: &'a Value) -> Self {
        Self { spec: &object["spec"], status: &object["status"] }
    }

    fn is(&self, condition: &str) -> bool {
        self.has(condition, "True")
    }

    fn has(&self, condition: &str, status: &str) -> bool {
        let conditions = list(self.status, "conditions");
        conditions.iter().any(|each| each["type"] == condition && each["status"] == status)
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn count(&self, field: &str) -> i64 {
        self.status[field].as_i64().unwrap_or_default()
    }

    fn time(&self, field: &str) -> Option<Timestamp> {
        self.status[field].as_str().and_then(|text| text.parse().ok())
    }
}

/// The errors of an updated status; most rules apply only to changed fields.
pub(super) fn check(object: &Value, old: &Value, problems: &mut Problems) {
    let (job, old) = (Job::of(object), Job::of(old));
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        problems.not_negative(&format!("status.{field}"), &job.status[field]);
    }
    uncounted(job.status, problems);
    conditions(&job, &old, problems);
    times(&job, &old, problems);
    finished(&job, &old, problems);
    indexes(&job, &old, problems);
    progress(&job, &old, problems);
}

fn uncounted(status: &Value, problems: &mut Problems) {
    let pods = &status["uncountedTerminatedPods"];
    let mut seen = HashSet::new();
    for field in ["succeeded", "failed"] {
        for (index, uid) in list(pods, field).iter().enumerate() {
            let path = format!("status.uncountedTerminatedPods.{field}[{index}]");
            if uid == "" {
                problems.invalid(&path, uid, "must not be empty");
            } else if !seen.insert(uid.as_str()) {
                problems.duplicate(&path, uid);
            }
        }
    }
}

fn conditions(job: &Job<'_>, old: &Job<'_>, problems: &mut Problems) {
    let has_changed = |condition: &str| job.is(condition) != old.is(condition);
    let mut refuse = |detail: &str| problems.invalid_omitted(CONDITIONS, detail);
    let (complete, failed) = (job.is("Complete"), job.is("Failed"));
    let is_met = job.is("SuccessCriteriaMet");
    if (has_changed("Complete") || has_changed("Failed")) && complete && failed {
        refuse("cannot set Complete=True and Failed=true conditions");
    }
    if (has_changed("Complete") || has_changed("FailureTarget"))
        && complete
        && job.is("FailureTarget")
    {
        refuse("cannot set Complete=True and FailureTarget=true conditions");
    }
    let failed_indexes = |job: &Job<'_>| job.status["failedIndexes"].clone();
    if (has_changed("Failed") || failed_indexes(job) != failed_indexes(old))
        && failed
        && !job.is("FailureTarget")
    {
        refuse("cannot set Failed=True condition without the FailureTarget=true condition");
    }
    if (has_changed("Complete") || has_changed("SuccessCriteriaMet")) && complete && !is_met {
        refuse("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
    if is_met && failed {
        refuse("cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if is_met && job.is("FailureTarget") {
        refuse("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if job.spec["successPolicy"].is_object() && !is_met && complete {
        refuse(
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        );
    }
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if old.is(condition) && !job.is(condition) {
            refuse(&format!("cannot disable the terminal {condition}=True condition"));
        }
    }
    if old.is("SuccessCriteriaMet") && !is_met {
        refuse("cannot disable the SuccessCriteriaMet=True condition");
    }
    if old.is("Complete") && !old.is("SuccessCriteriaMet") && is_met {
        refuse("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
    }
}

fn times(job: &Job<'_>, old: &Job<'_>, problems: &mut Problems) {
    let has_changed = |field: &str| job.status[field] != old.status[field];
    let completion_changed =
        job.is("Complete") != old.is("Complete") || has_changed("completionTime");
    let (start, completion) = (job.time("startTime"), job.time("completionTime"));
    let shown = go_text::time(&job.status["completionTime"]);
    let path = "status.completionTime";
    if completion_changed && completion.is_some() && !job.is("Complete") {
        let detail = "cannot set completionTime when there is no Complete=True condition";
        problems.invalid_text(path, &shown, detail);
    }
    if completion_changed && completion.is_none() && job.is("Complete") {
        problems.required(path, "completionTime is required for Complete jobs");
    }
    if (has_changed("startTime") || has_changed("completionTime"))
        && start.zip(completion).is_some_and(|(start, completion)| completion < start)
    {
        problems.invalid_text(path, &shown, "completionTime cannot be set before startTime");
    }
    if completion.is_some() && old.time("completionTime").is_some() && has_changed("completionTime")
    {
        problems.invalid_text(path, &shown, "completionTime cannot be mutated");
    }
    let is_resuming = old.is("Suspended") && job.has("Suspended", "False");
    if old.time("startTime").is_some()
        && has_changed("startTime")
        && !is_resuming
        && job.spec["suspend"] != true
    {
        problems.required("status.startTime", "startTime cannot be removed for unsuspended job");
    }
}

fn finished(job: &Job<'_>, old: &Job<'_>, problems: &mut Problems) {
    if !job.is_finished() {
        return;
    }
    let has_finished = !old.is_finished();
    let concerns = |field: &str| has_finished || job.status[field] != old.status[field];
    if concerns("active") && job.count("active") > 0 {
        let detail = "active>0 is invalid for finished job";
        problems.invalid("status.active", &job.status["active"], detail);
    }
    let has_nothing_to_do = job.spec["suspend"] == true && job.spec["completions"] == 0;
    if concerns("startTime") && !has_nothing_to_do && job.status["startTime"].is_null() {
        problems.required("status.startTime", "startTime is required for finished job");
    }
    let pods = &job.status["uncountedTerminatedPods"];
    if concerns("uncountedTerminatedPods")
        && ["succeeded", "failed"].iter().any(|field| !list(pods, field).is_empty())
    {
        let uids = |field: &str| match list(pods, field) {
            [] => "[]types.UID(nil)".to_owned(),
            uids => {
                let uids: Vec<String> = uids.iter().map(go_text::quoted).collect();
                format!("[]types.UID{{{}}}", uids.join(", "))
            }
        };
        let shown = format!(
            "batch.UncountedTerminatedPods{{Succeeded:{}, Failed:{}}}",
            uids("succeeded"),
            uids("failed")
        );
        let detail = "uncountedTerminatedPods needs to be empty for finished job";
        problems.invalid_text("status.uncountedTerminatedPods", &shown, detail);
    }
    if concerns("terminating") && job.count("terminating") > 0 {
        let detail = "terminating>0 is invalid for finished job";
        problems.invalid("status.terminating", &job.status["terminating"], detail);
    }
}

fn indexes(job: &Job<'_>, old: &Job<'_>, problems: &mut Problems) {
    let has_changed = |field: &str| job.status[field] != old.status[field];
    let completions = job.spec["completions"].as_i64();
    let has_limit = !job.spec["backoffLimitPerIndex"].is_null();
    let completed = text(job.status, "completedIndexes");
    let failed = &job.status["failedIndexes"];
    let mut refuse = |field: &str, detail: &str| {
        problems.invalid(&format!("status.{field}"), &text(job.status, field).into(), detail);
    };
    if has_changed("completedIndexes") {
        if let Some(Err(problem)) = completions.map(|all| jobs::count_indexes(completed, all)) {
            refuse("completedIndexes", &format!("error parsing completedIndexes: {problem}"));
        }
        if !completed.is_empty() && job.spec["completionMode"] != "Indexed" {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            refuse("completedIndexes", detail);
        }
    }
    if let Some(failed) = failed.as_str().filter(|_| has_changed("failedIndexes")) {
        let counted = completions.map(|all| jobs::count_indexes(failed, all));
        if let Some(Err(problem)) = counted.filter(|_| has_limit) {
            refuse("failedIndexes", &format!("error parsing failedIndexes: {problem}"));
        }
        if !has_limit {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            refuse("failedIndexes", detail);
        }
    }
}

fn progress(job: &Job<'_>, old: &Job<'_>, problems: &mut Problems) {
    let has_changed = |field: &str| job.status[field] != old.status[field];
    if (has_changed("ready") || has_changed("active")) && job.count("ready") > job.count("active") {
        let detail = "cannot set more ready pods than active";
        problems.invalid("status.ready", &job.status["ready"], detail);
    }
    if job.count("failed") < old.count("failed") {
        let detail = "cannot decrease the failed counter";
        problems.invalid("status.failed", &job.count("failed").into(), detail);
    }
    let is_elastic = job.spec["completionMode"] == "Indexed"
        && job.spec["completions"] == job.spec["parallelism"];
    if job.count("succeeded") < old.count("succeeded") && !is_elastic {
        let detail = "cannot decrease the succeeded counter";
        problems.invalid("status.succeeded", &job.count("succeeded").into(), detail);
    }
}
