//! ValidatingAdmissionPolicies: rules in CEL that reject writes without a webhook.
//!
//! Matching, order, actions and messages follow upstream. This file finds the policies and acts on
//! their results; `policy/params` finds their parameters and `policy/verdict` evaluates them.
//! `policy/mutations` contains the policies that change objects.

pub(super) mod mutations;
mod params;
mod verdict;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::matching::{self, View};
use super::{AdmissionRequest, review};
use crate::fields::{at, text, texts};
use crate::state::Inner;
use crate::store::Snapshot;
use crate::{Cause, StatusError, Stored};
use verdict::{Annotation, Failure, Rules};

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
/// The table of bindings; a policy without a binding has no effect.
pub(super) const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
/// Longer values of audit annotations are truncated.
const ANNOTATION_BYTES_MAX: usize = 10 << 10;
/// The annotation of failures whose action is `Audit`.
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The results of all policies for one write.
#[derive(Default)]
struct Findings {
    warnings: Vec<String>,
    annotations: Vec<(String, String)>,
    /// Only the first one is reported.
    denials: Vec<Denial>,
}

struct Denial {
    message: String,
    reason: String,
}

/// Lets every bound policy reject the request.
pub(super) async fn validate(
    inner: &Inner,
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let mut findings = Findings::default();
    let bindings: Vec<_> = snapshot.list(BINDINGS, "").map(|(_, binding)| binding).collect();
    for (_, policy) in snapshot.list(POLICIES, "") {
        let is_own =
            |binding: &Stored| text(binding.content(), &["spec", "policyName"]) == policy.name();
        let own: Vec<&Stored> =
            bindings.iter().map(|binding| &**binding).filter(|one| is_own(one)).collect();
        if !own.is_empty() {
            let policy = Policy { name: policy.name(), content: policy.content(), bindings: own };
            policy.judge(inner, snapshot, request, &mut findings).await?;
        }
    }
    request.warnings.append(&mut findings.warnings);
    request.annotations.append(&mut findings.annotations);
    match findings.denials.into_iter().next() {
        Some(denial) => Err(denial.into_error(request)),
        None => Ok(()),
    }
}

/// A policy with its bindings.
struct Policy<'a> {
    name: &'a str,
    content: &'a Value,
    bindings: Vec<&'a Stored>,
}

impl Policy<'_> {
    async fn judge(
        &self,
        inner: &Inner,
        snapshot: &Snapshot,
        request: &AdmissionRequest<'_>,
        findings: &mut Findings,
    ) -> Result<(), StatusError> {
        let constraints = at(self.content, &["spec", "matchConstraints"]);
        let seen =
            constraints.and_then(|found| matching::constrains(found, inner, snapshot, request));
        let Some(seen) = seen else { return Ok(()) };
        let view = View::of(inner, request, &seen).await?;
        let review_request = review::request(request, &view, "");
        let kind = match params::kind(self.content, inner) {
            Ok(kind) => kind,
            Err(problem) => {
                self.misconfigured(
                    None,
                    &format!("failed to configure policy: {problem}"),
                    findings,
                );
                return Ok(());
            }
        };
        let rules = Rules::of(self.content);
        let mut published: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in &self.bindings {
            let narrower = at(binding.content(), &["spec", "matchResources"]);
            let is_concerned = narrower.is_none_or(|found| {
                matching::constrains(found, inner, snapshot, request).is_some()
            });
            if !is_concerned {
                continue;
            }
            let reference = at(binding.content(), &["spec", "paramRef"]);
            let found =
                params::find(kind.as_deref(), reference, request.namespace, inner, snapshot);
            let all = match found.await {
                Ok(all) => all,
                Err(problem) => {
                    let message = format!("failed to configure binding: {problem}");
                    self.misconfigured(Some(binding.name()), &message, findings);
                    continue;
                }
            };
            for one in all {
                let environment = matching::environment(
                    inner,
                    request,
                    &view,
                    &review_request,
                    one.as_ref(),
                    &rules.variables(),
                );
                let outcome = rules.evaluate(&environment).await?;
                for failure in &outcome.failures {
                    self.act(binding, failure, findings);
                }
                for annotation in outcome.annotations {
                    self.publish(binding, annotation, &mut published, findings);
                }
            }
        }
        for (key, values) in published {
            findings.annotations.push((format!("{}/{key}", self.name), values.join(", ")));
        }
        Ok(())
    }

    /// Rejects the write because the policy cannot be evaluated, unless its failure policy is
    /// `Ignore`.
    fn misconfigured(&self, binding: Option<&str>, problem: &str, findings: &mut Findings) {
        if text(self.content, &["spec", "failurePolicy"]) != "Ignore" {
            findings.denials.push(self.denial(binding, problem, ""));
        }
    }

    fn denial(&self, binding: Option<&str>, problem: &str, reason: &str) -> Denial {
        let with = binding.map(|name| format!(" with binding '{name}'")).unwrap_or_default();
        let message =
            format!("ValidatingAdmissionPolicy '{}'{with} denied request: {problem}", self.name);
        Denial { message, reason: reason.to_owned() }
    }

    fn act(&self, binding: &Stored, failure: &Failure, findings: &mut Findings) {
        let actions = texts(binding.content(), &["spec", "validationActions"]);
        let (policy, name, message) = (self.name, binding.name(), &failure.message);
        for action in &actions {
            match *action {
                "Deny" => {
                    findings.denials.push(self.denial(Some(name), message, &failure.reason));
                }
                "Warn" => findings.warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                     '{name}': {message}"
                )),
                "Audit" => {
                    let value = json!([{
                        "message": message, "policy": policy, "binding": name,
                        "expressionIndex": failure.index, "validationActions": actions,
                    }]);
                    findings.annotations.push((FAILURE_ANNOTATION.to_owned(), value.to_string()));
                }
                _ => {}
            }
        }
    }

    fn publish(
        &self,
        binding: &Stored,
        annotation: Annotation,
        published: &mut BTreeMap<String, Vec<String>>,
        findings: &mut Findings,
    ) {
        match annotation.value {
            Ok(None) => {}
            Ok(Some(mut value)) => {
                let mut cut = value.len().min(ANNOTATION_BYTES_MAX);
                while !value.is_char_boundary(cut) {
                    cut -= 1;
                }
                value.truncate(cut);
                let values = published.entry(annotation.key).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            Err(problem) => {
                findings.denials.push(self.denial(Some(binding.name()), &problem, ""));
            }
        }
    }
}

impl Denial {
    fn into_error(self, request: &AdmissionRequest<'_>) -> StatusError {
        let Self { message, reason } = self;
        let resource = request.resource;
        let mut error =
            StatusError::forbidden(&resource.group, &resource.resource, request.name, &message);
        let (code, reason) = match reason.as_str() {
            "Forbidden" => (403, "Forbidden"),
            "Unauthorized" => (401, "Unauthorized"),
            "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
            _ => (422, "Invalid"),
        };
        error.code = code;
        reason.clone_into(&mut error.reason);
        error.with_cause(Cause { message, ..Cause::default() })
    }
}
