//! MutatingAdmissionPolicies: expressions in CEL that change objects before they are stored.
//!
//! They run before mutating webhooks. Policies that request reinvocation run again if the object
//! was changed after them. Matching, parameters and variables work as for validating policies.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Denial, params};
use crate::admission::matching::{self, Seen, View};
use crate::admission::{AdmissionRequest, review};
use crate::fields::{at, items, text};
use crate::resource::ResourceInfo;
use crate::schema::cel::{self, Environment};
use crate::state::Inner;
use crate::store::Snapshot;
use crate::{StatusError, Stored, apply, patch, schema};

const POLICIES: &str = "mutatingadmissionpolicies.admissionregistration.k8s.io";
/// The table of bindings; a policy without a binding has no effect.
pub(in crate::admission) const BINDINGS: &str =
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io";

/// A policy with one of its bindings and one of its parameters.
struct Invocation {
    policy: Arc<Stored>,
    binding: Arc<Stored>,
    params: Option<Value>,
}

/// The policies that have run for a write.
#[derive(Default)]
pub(in crate::admission) struct Pass {
    /// Policies that request reinvocation, by their index among the invocations.
    invoked: Vec<usize>,
    /// Policies whose object has been changed since they ran.
    again: HashSet<usize>,
    /// The object as changed by the policies.
    output: Option<Value>,
}

/// Lets every bound policy change the object.
pub(in crate::admission) async fn mutate(
    inner: &Inner,
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<Pass, StatusError> {
    let mut pass = Pass::default();
    let all = invocations(inner, snapshot, request).await?;
    for (index, invocation) in all.iter().enumerate() {
        let before = request.object.clone();
        if !invocation.run(inner, snapshot, request).await? {
            continue;
        }
        if request.object != before {
            pass.again.extend(pass.invoked.iter().copied());
        }
        if text(invocation.policy.content(), &["spec", "reinvocationPolicy"]) == "IfNeeded" {
            pass.invoked.push(index);
        }
    }
    pass.output.clone_from(&request.object);
    Ok(pass)
}

/// Runs policies again if they request it and the object has changed since.
pub(in crate::admission) async fn mutate_again(
    inner: &Inner,
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
    mut pass: Pass,
) -> Result<(), StatusError> {
    if request.object != pass.output {
        pass.again.extend(pass.invoked.iter().copied());
    }
    if pass.again.is_empty() {
        return Ok(());
    }
    let all = invocations(inner, snapshot, request).await?;
    for (index, invocation) in all.iter().enumerate() {
        if pass.again.contains(&index) {
            invocation.run(inner, snapshot, request).await?;
        }
    }
    Ok(())
}

/// The evaluations to make, in order: policies, their bindings, their parameters.
async fn invocations(
    inner: &Inner,
    snapshot: &Snapshot,
    request: &AdmissionRequest<'_>,
) -> Result<Vec<Invocation>, StatusError> {
    let mut all = Vec::new();
    for (_, policy) in snapshot.list(POLICIES, "") {
        let constraints = at(policy.content(), &["spec", "matchConstraints"]);
        let is_concerned = constraints
            .is_some_and(|found| matching::constrains(found, inner, snapshot, request).is_some());
        if !is_concerned {
            continue;
        }
        let kind = params::kind(policy.content(), inner);
        for (_, binding) in snapshot.list(BINDINGS, "") {
            let content = binding.content();
            let narrower = at(content, &["spec", "matchResources"]);
            let is_own = text(content, &["spec", "policyName"]) == policy.name();
            let is_concerned = is_own
                && narrower.is_none_or(|found| {
                    matching::constrains(found, inner, snapshot, request).is_some()
                });
            if !is_concerned {
                continue;
            }
            let found = match &kind {
                Ok(kind) => {
                    let reference = at(content, &["spec", "paramRef"]);
                    params::find(kind.as_deref(), reference, request.namespace, inner, snapshot)
                        .await
                        .map_err(|problem| format!("failed to configure binding: {problem}"))
                }
                Err(problem) => Err(format!("failed to configure policy: {problem}")),
            };
            let found = match found {
                Ok(found) => found,
                Err(problem) => {
                    refuse(&policy, &binding, &problem, request)?;
                    continue;
                }
            };
            all.extend(found.into_iter().map(|params| Invocation {
                policy: Arc::clone(&policy),
                binding: Arc::clone(&binding),
                params,
            }));
        }
    }
    Ok(all)
}

/// Rejects the write because a policy cannot be evaluated, unless its failure policy is `Ignore`.
fn refuse(
    policy: &Stored,
    binding: &Stored,
    problem: &str,
    request: &AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    if text(policy.content(), &["spec", "failurePolicy"]) == "Ignore" {
        return Ok(());
    }
    let (policy, binding) = (policy.name(), binding.name());
    let message = format!("policy '{policy}' with binding '{binding}' denied request: {problem}");
    Err(Denial { message, reason: String::new() }.into_error(request))
}

impl Invocation {
    /// Changes the object; returns whether the conditions of the policy hold.
    async fn run(
        &self,
        inner: &Inner,
        snapshot: &Snapshot,
        request: &mut AdmissionRequest<'_>,
    ) -> Result<bool, StatusError> {
        let spec = &self.policy.content()["spec"];
        let Some(seen) = matching::constrains(&spec["matchConstraints"], inner, snapshot, request)
        else {
            return Ok(false);
        };
        for (index, mutation) in items(spec, &["mutations"]).iter().enumerate() {
            let view = View::of(inner, request, &seen).await?;
            let environment = self.environment(inner, request, &view);
            if index == 0 {
                match self.matches(&environment) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(problem) => {
                        refuse(&self.policy, &self.binding, &problem, request)?;
                        return Ok(false);
                    }
                }
            }
            let Some(object) = view.object.as_deref() else { continue };
            match changed(object, mutation, view.resource, &environment) {
                Ok(object) => take(inner, request, &seen, object).await?,
                Err(problem) => refuse(&self.policy, &self.binding, &problem, request)?,
            }
        }
        Ok(true)
    }

    fn environment(
        &self,
        inner: &Inner,
        request: &AdmissionRequest<'_>,
        view: &View<'_>,
    ) -> Arc<Environment> {
        let review_request = review::request(request, view, "");
        let variables: Vec<(&str, &str)> = items(self.policy.content(), &["spec", "variables"])
            .iter()
            .map(|one| (text(one, &["name"]), text(one, &["expression"])))
            .collect();
        let params = self.params.as_ref();
        matching::environment(inner, request, view, &review_request, params, &variables)
    }

    fn matches(&self, environment: &Arc<Environment>) -> Result<bool, String> {
        cel::start_budget();
        let conditions = items(self.policy.content(), &["spec", "matchConditions"]).iter();
        matching::all_hold(environment, conditions.map(|one| text(one, &["expression"])))
    }
}

/// The object after a mutation.
fn changed(
    object: &Value,
    mutation: &Value,
    resource: &ResourceInfo,
    environment: &Arc<Environment>,
) -> Result<Value, String> {
    cel::start_budget();
    if text(mutation, &["patchType"]) == "JSONPatch" {
        let steps = environment.mutation(text(mutation, &["jsonPatch", "expression"]))?;
        let mut patched = object.clone();
        return match patch::json::apply(&mut patched, &steps) {
            Ok(()) => Ok(patched),
            // If a `test` operation fails, the patch is not applied.
            Err(problem) if problem.is_failed_test() => Ok(object.clone()),
            Err(problem) => Err(format!("JSONPath: {problem}")),
        };
    }
    let mut config = environment.mutation(text(mutation, &["applyConfiguration", "expression"]))?;
    config["apiVersion"] = object["apiVersion"].clone();
    config["kind"] = object["kind"].clone();
    apply::overlay(resource.schema.as_deref(), object, &config)
        .map_err(|problem| format!("error applying patch: {problem}"))
}

/// Puts a changed object into the request, in the requested version.
async fn take(
    inner: &Inner,
    request: &mut AdmissionRequest<'_>,
    seen: &Seen,
    mut object: Value,
) -> Result<(), StatusError> {
    if matches!(seen, Seen::As(_)) {
        object = matching::in_version(inner, request.resource, object).await?;
        object["apiVersion"] = request.resource.api_version().into();
    }
    if let Some(schema) = request.resource.schema.as_deref() {
        if request.resource.is_custom() {
            schema::prune(schema, &mut object);
        }
        schema::fill_defaults(schema, &mut object);
    }
    request.object = Some(object);
    Ok(())
}
