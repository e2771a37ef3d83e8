//! Validation rules of built-in kinds beyond their schema.
//!
//! Pure. Messages, reasons and paths are upstream's. The rules never reject anything that the real
//! server accepts; rules that hardly matter in practice are missing.

mod admission;
mod autoscalers;
mod certificates;
mod config;
mod containers;
mod cron_jobs;
mod events;
mod flow_control;
mod go_text;
mod ingress;
mod job_status;
mod jobs;
mod labels;
mod limits;
mod mounts;
mod mutations;
mod namespaces;
mod network;
mod nodes;
mod pod_annotations;
mod pod_security;
mod pod_spec;
mod policy;
mod resources;
mod scheduling;
mod slices;
mod status;
mod storage;
mod storage_classes;
mod volume_sources;
mod volumes;
pub(super) mod warnings;
mod workloads;

use serde_json::Value;

use super::KindContext;
use super::kind::Kind;
use crate::FieldError;

/// Whether an AppArmor profile is complete and consistent.
pub(super) fn is_valid_app_armor(profile: &Value) -> bool {
    let mut problems = Problems::default();
    pod_security::app_armor(profile, "", &mut problems);
    problems.found.is_empty()
}

/// The errors of a new object.
pub(super) fn create(context: &KindContext<'_>, object: &Value) -> Vec<FieldError> {
    let mut problems = Problems::default();
    check(context, object, None, &mut problems);
    problems.found
}

/// The errors of an updated object.
pub(super) fn update(context: &KindContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut problems = Problems::default();
    let (group, resource) = (context.resource.group.as_str(), context.resource.resource.as_str());
    match context.subresource {
        "" => {}
        "status" => {
            status::check(group, resource, object, old, &mut problems);
            return problems.found;
        }
        "finalize" => {
            namespaces::finalize(object, &mut problems);
            return problems.found;
        }
        "ephemeralcontainers" => {
            pod_spec::ephemeral(object, old, &mut problems);
            return problems.found;
        }
        "resize" => {
            pod_spec::resize(object, old, &mut problems);
            return problems.found;
        }
        _ => return problems.found,
    }
    if resource == "events" {
        events::update(object, old, group, &mut problems);
        return problems.found;
    }
    // Most kinds validate metadata twice on updates, and some of them everything.
    if resource != "podtemplates" {
        finalizers(context, object, &mut problems);
    }
    check(context, object, Some(old), &mut problems);
    if Kind::of(context.resource).is_checked_twice {
        check_content(context, object, Some(old), &mut problems);
    }
    match group {
        "apps" | "batch" => workloads::update(resource, object, old, &mut problems),
        "" => match resource {
            "pods" => pod_spec::update(object, old, &mut problems),
            "services" => network::service_update(object, old, &mut problems),
            "configmaps" | "secrets" => config::update(resource, object, old, &mut problems),
            "persistentvolumeclaims" => storage::claim_update(object, old, &mut problems),
            "persistentvolumes" => storage::volume_update(object, old, &mut problems),
            "resourcequotas" => limits::quota_update(object, old, &mut problems),
            "nodes" => nodes::update(object, old, &mut problems),
            _ => {}
        },
        "discovery.k8s.io" => slices::update(object, old, &mut problems),
        "storage.k8s.io" => storage_classes::update(resource, object, old, &mut problems),
        _ => policy::update(group, resource, object, old, &mut problems),
    }
    problems.found
}

/// Finalizers without a domain are reserved for the server.
fn finalizers(context: &KindContext<'_>, object: &Value, problems: &mut Problems) {
    const STANDARD: &[&str] = &["orphan", "foregroundDeletion", "kubernetes"];
    // Kinds from outside the main source tree are more lenient.
    if matches!(context.resource.group.as_str(), "apiextensions.k8s.io" | "apiregistration.k8s.io")
    {
        return;
    }
    for (index, finalizer) in
        super::fields::list(&object["metadata"], "finalizers").iter().enumerate()
    {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !STANDARD.contains(&name) {
            problems.invalid(
                &format!("metadata.finalizers[{index}]"),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            );
        }
    }
}

fn check(context: &KindContext<'_>, object: &Value, old: Option<&Value>, problems: &mut Problems) {
    finalizers(context, object, problems);
    check_content(context, object, old, problems);
}

fn check_content(
    context: &KindContext<'_>,
    object: &Value,
    old: Option<&Value>,
    problems: &mut Problems,
) {
    let resource = context.resource.resource.as_str();
    match (context.resource.group.as_str(), resource) {
        ("", "pods") => {
            pod_spec::check_pod(object, old.is_none(), problems);
            pod_spec::check(&object["spec"], "spec", problems);
        }
        ("", "services") => {
            network::service(object, old.is_none(), context.is_dry_run, problems);
            if !context.is_dry_run {
                network::node_ports(&object["spec"], problems);
            }
        }
        ("", "configmaps" | "secrets") => config::check(resource, object, problems),
        ("", "persistentvolumeclaims" | "persistentvolumes") => {
            storage::check(resource, object, problems);
        }
        ("" | "events.k8s.io", "events") => {
            events::create(object, &context.resource.group, problems);
        }
        ("", "endpoints") => ingress::endpoints(object, problems),
        ("", "limitranges") => limits::limit_range(&object["spec"], problems),
        ("", "resourcequotas") => limits::quota(&object["spec"], problems),
        ("", "nodes") => nodes::check(object, problems),
        ("", "namespaces") => namespaces::check(&object["spec"], problems),
        ("", "podtemplates") => {
            pod_spec::check(&object["template"]["spec"], "template.spec", problems);
        }
        ("apps" | "batch" | "autoscaling", _) | ("", "replicationcontrollers") => {
            workloads::check(resource, object, old, problems);
        }
        ("discovery.k8s.io", "endpointslices") => slices::check(object, old, problems),
        ("networking.k8s.io", _) => network::check(resource, object, old, problems),
        ("storage.k8s.io", _) => {
            storage_classes::check(resource, object, old.is_none(), problems);
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificates::request(&object["spec"], problems);
        }
        ("flowcontrol.apiserver.k8s.io", _) => flow_control::check(resource, object, problems),
        (group, _) => policy::check(group, resource, object, problems),
    }
}

/// The field errors found so far.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<FieldError>,
}

impl Problems {
    fn required(&mut self, path: &str, detail: &str) {
        self.found.push(FieldError::required(path, detail));
    }

    fn invalid(&mut self, path: &str, value: &Value, detail: &str) {
        self.found.push(FieldError::invalid(path, value, detail));
    }

    /// Adds an invalid value in Go's own format.
    fn invalid_text(&mut self, path: &str, shown: &str, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        let message = format!("Invalid value: {shown}{colon}{detail}");
        self.found.push(FieldError::new(crate::FieldErrorReason::Invalid, path, message));
    }

    /// Adds an invalid value that is not shown.
    fn invalid_omitted(&mut self, path: &str, detail: &str) {
        let message = format!("Invalid value: {detail}");
        self.found.push(FieldError::new(crate::FieldErrorReason::Invalid, path, message));
    }

    fn too_long(&mut self, path: &str, most: usize) {
        self.found.push(FieldError::too_long(path, most));
    }

    fn forbidden(&mut self, path: &str, detail: &str) {
        self.found.push(FieldError::forbidden(path, detail));
    }

    fn duplicate(&mut self, path: &str, value: &Value) {
        self.found.push(FieldError::duplicate(path, value));
    }

    fn not_found(&mut self, path: &str, value: &str) {
        let message = format!("Not found: {value:?}");
        self.found.push(FieldError::new(crate::FieldErrorReason::NotFound, path, message));
    }

    /// Rejects strings that are not supported.
    fn one_of(&mut self, path: &str, value: &Value, supported: &[&str]) {
        if !value.as_str().is_some_and(|text| supported.contains(&text)) {
            self.found.push(FieldError::not_supported(path, value, supported));
        }
    }

    /// Rejects a string that is set but not supported.
    fn one_of_if_set(&mut self, owner: &Value, path: &str, field: &str, supported: &[&str]) {
        if !owner[field].is_null() {
            let dot = if path.is_empty() { "" } else { "." };
            self.one_of(&format!("{path}{dot}{field}"), &owner[field], supported);
        }
    }

    fn too_many(&mut self, path: &str, found: usize, most: usize) {
        let message = format!("Too many: {found}: must have at most {most} items");
        self.found.push(FieldError::new(crate::FieldErrorReason::TooMany, path, message));
    }

    /// Rejects negative numbers; absent ones are valid.
    fn not_negative(&mut self, path: &str, value: &Value) {
        if value.as_f64().is_some_and(|number| number < 0.0) {
            self.invalid(path, value, "must be greater than or equal to 0");
        }
    }

    fn immutable(&mut self, path: &str, new: &Value, old: &Value) {
        if new != old {
            self.invalid(path, new, "field is immutable");
        }
    }
}
