//! ValidatingAdmissionPolicies: rules in CEL that refuse writes without any webhook.
//!
//! Same matching, actions and texts as upstream. Not evaluated: parameters, `variables`,
//! `authorizer` and `namespaceObject`; a policy that needs them answers with a warning instead of
//! a verdict.

use serde_json::Value;

use super::matching::{self, View};
use super::{AdmissionRequest, review};
use crate::controllers::fields::{at, items, text, texts};
use crate::schema::cel::{self, Condition, Variables};
use crate::store::Snapshot;
use crate::{Cause, StatusError};

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
/// Table of the bindings; without one, no policy matters.
pub(super) const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
/// What this server cannot give to expressions.
const UNKNOWN_VARIABLES: [&str; 4] = ["params", "variables.", "authorizer", "namespaceObject"];

/// One policy as a binding applies it.
struct Bound<'a> {
    policy: &'a Value,
    policy_name: &'a str,
    binding: &'a Value,
    binding_name: &'a str,
}

/// Lets every bound policy refuse the request.
pub(super) async fn validate(
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let review_request = review::request(request, &View::as_requested(request), "");
    let bindings: Vec<_> = snapshot.list(BINDINGS, "").map(|(_, binding)| binding).collect();
    for binding in bindings {
        let name = text(binding.content(), &["spec", "policyName"]);
        let Some(policy) = snapshot.get(POLICIES, "", name) else { continue };
        let bound = Bound {
            policy: policy.content(),
            policy_name: name,
            binding: binding.content(),
            binding_name: binding.name(),
        };
        if bound.concerns(snapshot, request) {
            bound.judge(request, &review_request).await?;
        }
    }
    Ok(())
}

/// The expressions of one policy.
#[derive(Clone)]
struct Expressions {
    conditions: Vec<String>,
    validations: Vec<String>,
}

fn expression_of(one: &Value) -> String {
    text(one, &["expression"]).to_owned()
}

impl Expressions {
    /// What each validation says; none when a condition does not hold. Never takes long here: what
    /// costs much is evaluated on another thread.
    async fn evaluate(
        self,
        request: &AdmissionRequest<'_>,
        review_request: &Value,
    ) -> Result<Option<Vec<Result<bool, String>>>, StatusError> {
        let object = request.object.clone().unwrap_or(Value::Null);
        let old_object = request.old_object.clone().unwrap_or(Value::Null);
        let variables =
            Variables { object: &object, old_object: &old_object, request: review_request };
        if let Some(outcomes) = cel::quickly(|| self.outcomes(variables)) {
            return Ok(outcomes);
        }
        let review_request = review_request.clone();
        let evaluate = move || {
            let request = &review_request;
            self.outcomes(Variables { object: &object, old_object: &old_object, request })
        };
        tokio::task::spawn_blocking(evaluate).await.map_err(|error| {
            StatusError::internal(format!(
                "could not evaluate a ValidatingAdmissionPolicy: {error}"
            ))
        })
    }

    fn outcomes(&self, variables: Variables<'_>) -> Option<Vec<Result<bool, String>>> {
        cel::start_budget();
        let holds = |expression: &String| {
            Condition::parse(expression).and_then(|condition| condition.holds(variables))
        };
        if self.conditions.iter().any(|condition| holds(condition) == Ok(false)) {
            return None;
        }
        Some(self.validations.iter().map(holds).collect())
    }
}

impl Bound<'_> {
    fn concerns(&self, snapshot: &Snapshot, request: &AdmissionRequest<'_>) -> bool {
        let constraints = at(self.policy, &["spec", "matchConstraints"]);
        let narrower = at(self.binding, &["spec", "matchResources"]);
        constraints.is_some_and(|found| matching::constrains(found, snapshot, request))
            && narrower.is_none_or(|found| matching::constrains(found, snapshot, request))
    }

    async fn judge(
        &self,
        request: &mut AdmissionRequest<'_>,
        review_request: &Value,
    ) -> Result<(), StatusError> {
        let validations = items(self.policy, &["spec", "validations"]);
        let conditions = items(self.policy, &["spec", "matchConditions"]);
        let mut all = validations.iter().chain(conditions).map(|one| text(one, &["expression"]));
        let is_beyond_us =
            all.any(|expression| UNKNOWN_VARIABLES.iter().any(|name| expression.contains(name)));
        if is_beyond_us {
            request.warnings.push(format!(
                "ValidatingAdmissionPolicy '{}' was not evaluated: it needs variables that this \
                 server does not have",
                self.policy_name
            ));
            return Ok(());
        }
        let expressions = Expressions {
            conditions: conditions.iter().map(expression_of).collect(),
            validations: validations.iter().map(expression_of).collect(),
        };
        let Some(outcomes) = expressions.evaluate(request, review_request).await? else {
            return Ok(());
        };
        for (validation, outcome) in validations.iter().zip(outcomes) {
            let expression = text(validation, &["expression"]);
            let problem = match outcome {
                Ok(true) => continue,
                Ok(false) => match text(validation, &["message"]) {
                    "" => format!("failed expression: {expression}"),
                    message => message.to_owned(),
                },
                Err(_) if text(self.policy, &["spec", "failurePolicy"]) == "Ignore" => continue,
                Err(problem) => format!("expression '{expression}' resulted in error: {problem}"),
            };
            self.act(request, validation, &problem)?;
        }
        Ok(())
    }

    fn act(
        &self,
        request: &mut AdmissionRequest<'_>,
        validation: &Value,
        problem: &str,
    ) -> Result<(), StatusError> {
        let (policy, binding) = (self.policy_name, self.binding_name);
        let actions = texts(self.binding, &["spec", "validationActions"]);
        if actions.contains(&"Warn") {
            request.warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                 '{binding}': {problem}"
            ));
        }
        if !actions.contains(&"Deny") {
            return Ok(());
        }
        let message = format!(
            "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {problem}"
        );
        let resource = request.resource;
        let mut error =
            StatusError::forbidden(&resource.group, &resource.resource, request.name, &message);
        let (code, reason) = match text(validation, &["reason"]) {
            "Forbidden" => (403, "Forbidden"),
            "Unauthorized" => (401, "Unauthorized"),
            "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
            _ => (422, "Invalid"),
        };
        error.code = code;
        reason.clone_into(&mut error.reason);
        Err(error.with_cause(Cause { message, ..Cause::default() }))
    }
}
