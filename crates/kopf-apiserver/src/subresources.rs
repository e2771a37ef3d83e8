//! Subresources with special behaviour: tokens, bindings, evictions, logs.

use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::answer::{bytes_response, json_response};
use crate::body::Body;
use crate::decode;
use crate::encode::Encoder;
use crate::http_request::Request;
use crate::meta;
use crate::rest::{self, Call, Change, DeleteRequest, Made};
use crate::tokens::AUDIENCE;
use crate::{StatusError, authn};

/// Handles the subresources of this module; `None` means that the generic code takes over.
pub(crate) async fn handle(
    call: &mut Call,
    request: &Request,
    _encoder: &Encoder,
) -> Result<Option<Response<Body>>, StatusError> {
    let table = call.resource.table.to_string();
    let subresource = call.info.subresource.clone();
    let body = || -> Result<Value, StatusError> {
        let kind = "Status";
        Ok(decode::body(request.header(&CONTENT_TYPE), &request.body, kind)?.value)
    };
    match (table.as_str(), subresource.as_str()) {
        ("serviceaccounts", "token") => {
            let review = body()?;
            crate::rest::check_object("TokenRequest", &review, &request.body)?;
            token(call, review).map(Some)
        }
        ("pods", "binding") => binding(call, &body()?).await.map(Some),
        ("pods", "eviction") => eviction(call, &body()?).await.map(Some),
        ("pods", "log") => log(call, &request.query).map(Some),
        ("pods" | "services" | "nodes", "exec" | "attach" | "portforward" | "proxy") => {
            Err(not_emulated(call, &subresource))
        }
        _ => Ok(None),
    }
}

/// The error for a connection to a pod, node or service: not found, no node, or no process.
fn not_emulated(call: &Call, subresource: &str) -> StatusError {
    let object = match call.read() {
        Ok(object) => object,
        Err(error) => return error,
    };
    let is_pod = &*call.resource.table == "pods";
    let node = object.content()["spec"]["nodeName"].as_str().unwrap_or_default();
    if is_pod && node.is_empty() && subresource != "proxy" {
        let problem = format!("pod {} does not have a host assigned", call.info.name);
        return StatusError::bad_request(problem);
    }
    let problem = format!(
        "{subresource} is not emulated by this server: its pods run no processes and have no ports"
    );
    StatusError::new(501, "NotImplemented", problem)
}

/// The lifetime of a token in seconds.
fn token_seconds(spec: &Value) -> Result<i64, StatusError> {
    const DEFAULT: i64 = 3600;
    const MIN: i64 = 600;
    const MAX: i64 = 1 << 32;
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT);
    let problem = match seconds {
        ..MIN => "may not specify a duration less than 10 minutes",
        MIN..=MAX => return Ok(seconds),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let value = &spec["expirationSeconds"];
    let error = crate::FieldError::invalid("spec.expirationSeconds", value, problem);
    Err(StatusError::invalid("authentication.k8s.io", "TokenRequest", "", &[error]))
}

/// A token request may omit its type, but may not have another one.
fn check_review_type(review: &Value) -> Result<(), StatusError> {
    let text = |key: &str| review[key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let is_request = matches!(kind, "" | "TokenRequest")
        && matches!(api_version, "" | "authentication.k8s.io/v1");
    if is_request {
        return Ok(());
    }
    let (_, version) = crate::resource::split_api_version(api_version);
    Err(StatusError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a TokenRequest: converting \
         ({version}.{kind}) to (authentication.TokenRequest): unknown conversion"
    )))
}

/// A token request may omit the name of the account, but may not have another one.
fn check_review_name(call: &Call, review: &Value) -> Result<(), StatusError> {
    let name = meta::text(review, "name");
    if name.is_empty() || name == call.info.name {
        return Ok(());
    }
    let detail = "must match the service account name if specified";
    let error = crate::FieldError::invalid("metadata.name", &name.into(), detail);
    let (group, kind) = ("authentication.k8s.io", "TokenRequest");
    Err(StatusError::invalid(group, kind, &call.info.name, &[error]))
}

/// Signs a token for a service account.
fn token(call: &Call, mut review: Value) -> Result<Response<Body>, StatusError> {
    check_review_type(&review)?;
    if let Some(schema) = crate::schema::builtin("authentication.k8s.io", "v1", "TokenRequest") {
        crate::schema::check_types(&schema, &review).map_err(|problem| {
            StatusError::bad_request(format!(
                "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: {problem}"
            ))
        })?;
    }
    let account = call.read()?;
    let given = review["metadata"]["namespace"].as_str().unwrap_or_default();
    if !matches!(given, "") && given != call.info.namespace {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    check_review_name(call, &review)?;
    let seconds = token_seconds(&review["spec"])?;
    let now = call.inner.clock.now();
    let audiences = match review["spec"]["audiences"].as_array() {
        Some(items) if !items.is_empty() => json!(items),
        _ => json!([AUDIENCE]),
    };
    let reference = &review["spec"]["boundObjectRef"];
    let (namespace, name) = (&call.info.namespace, &call.info.name);
    let bound = authn::bind(reference, namespace, name, &call.inner.store)?;
    let (expires, warn_after) = authn::lifetime(seconds, bound.is_pod(), now);
    let mut claims = json!({
        "iss": AUDIENCE,
        "aud": audiences,
        "iat": now.as_second(),
        "nbf": now.as_second(),
        "exp": expires.as_second(),
        "jti": call.inner.ids.uid(),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": { "name": name, "uid": account.uid() },
        },
    });
    let private = &mut claims["kubernetes.io"];
    for (kind, object) in bound.claims {
        private[kind] = object;
    }
    if let Some(time) = warn_after {
        private["warnafter"] = json!(time);
    }
    let mut sent = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
        "spec": review["spec"],
    });
    sent["spec"]["expirationSeconds"] = json!(seconds);
    review["kind"] = json!("TokenRequest");
    review["apiVersion"] = json!("authentication.k8s.io/v1");
    review["metadata"] = json!({
        "name": call.info.name,
        "namespace": call.info.namespace,
        "creationTimestamp": meta::format_time(now),
    });
    review["spec"]["audiences"] = audiences;
    review["spec"]["expirationSeconds"] = json!(seconds);
    if review["spec"]["boundObjectRef"].is_null() {
        review["spec"]["boundObjectRef"] = Value::Null;
    }
    managers_of_token(call, &mut sent, &meta::format_time(now)).put_into(&mut review);
    review["status"] = json!({
        "token": call.inner.authenticator.issuer.sign(&claims),
        "expirationTimestamp": authn::nominal_end(seconds, now),
    });
    Ok(json_response(StatusCode::CREATED, &review))
}

/// The managed fields of a token request.
fn managers_of_token(call: &Call, sent: &mut Value, time: &str) -> crate::apply::ManagedFields {
    let manager = crate::apply::Manager {
        name: call.manager(),
        api_version: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        subresource: "token",
        has_status: false,
        has_versions: false,
        time,
    };
    let schema = crate::schema::builtin("authentication.k8s.io", "v1", "TokenRequest");
    crate::apply::track_update(&manager, schema.as_deref(), None, sent)
}

fn success() -> Response<Body> {
    json_response(
        StatusCode::CREATED,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }),
    )
}

/// Binds the pod that a Binding names: the older endpoint for the same operation.
pub(crate) async fn bind_named(
    call: &mut Call,
    body: &Value,
) -> Result<Response<Body>, StatusError> {
    call.resource = call.inner.resource_of_table("pods")?;
    let info = call.info_mut();
    meta::text(body, "name").clone_into(&mut info.name);
    info.subresource = "binding".to_owned();
    bind(call, body).await?;
    Ok(success())
}

/// Binds a pod to a node.
async fn binding(call: &mut Call, body: &Value) -> Result<Response<Body>, StatusError> {
    if meta::text(body, "name") != call.info.name {
        let problem = "name in URL does not match name in Binding object";
        return Err(StatusError::bad_request(problem));
    }
    bind(call, body).await?;
    Ok(success())
}

/// Binds a pod to the node that a Binding names.
pub(crate) async fn bind(call: &mut Call, body: &Value) -> Result<(), StatusError> {
    let node = body["target"]["name"].as_str().unwrap_or_default().to_owned();
    let kind = body["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        let supported = ["Node", "<empty>"];
        let error = crate::FieldError::not_supported("target.kind", &kind.into(), &supported);
        return Err(StatusError::new(500, "", error.full_message()));
    }
    if node.is_empty() {
        return Err(StatusError::new(500, "", "target.name: Required value"));
    }
    let now = meta::format_time(call.inner.clock.now());
    rest::update_with(call, Change::Patch, |call, present| {
        let old = present.object;
        if let Some(present) = old["spec"]["nodeName"].as_str().filter(|name| !name.is_empty()) {
            let name = &call.info.name;
            let problem = format!("pod {name} is already assigned to node {present:?}");
            return Err(StatusError::conflict("", "pods/binding", name, &problem));
        }
        let gates = old["spec"]["schedulingGates"].as_array();
        if gates.is_some_and(|gates| !gates.is_empty()) {
            let name = &call.info.name;
            let problem = format!("pod {name} has non-empty .spec.schedulingGates");
            return Err(StatusError::conflict("", "pods/binding", name, &problem));
        }
        let mut pod = old.clone();
        pod["spec"]["nodeName"] = json!(node);
        let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|condition| condition["type"] != "PodScheduled");
        conditions.push(json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": now,
        }));
        pod["status"]["conditions"] = Value::Array(conditions);
        // A binding does not create a field manager, as in upstream.
        Ok(Made::tracked(pod, present.managed.clone()))
    })
    .await?;
    Ok(())
}

/// Deletes a pod unless a disruption budget forbids it.
async fn eviction(call: &mut Call, body: &Value) -> Result<Response<Body>, StatusError> {
    let name = meta::text(body, "name");
    if name != call.info.name {
        let problem = "name in URL does not match name in Eviction object";
        return Err(StatusError::bad_request(problem));
    }
    let pod = call.read()?;
    let mut query = crate::query::Query::default();
    if call.options.dry_run {
        query = crate::query::Query::parse("dryRun=All");
    }
    let options = DeleteRequest::parse(&query, &body["deleteOptions"])?;
    if !needs_no_budget(pod.content()) {
        deduct_from_budget(call, pod.content()).await?;
    }
    call.info_mut().subresource.clear();
    rest::delete(call, &options).await?;
    Ok(success())
}

/// Whether the eviction of a pod cannot deduct_from_budget anything: it has ended, not started, or is
/// terminating.
fn needs_no_budget(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::is_deleting(pod)
}

/// Deducts one eviction from the budget of a pod, if it has one.
async fn deduct_from_budget(call: &Call, pod: &Value) -> Result<(), StatusError> {
    const BUDGETS: &str = "poddisruptionbudgets.policy";
    let snapshot = call.inner.store.snapshot();
    let labels = &pod["metadata"]["labels"];
    let selecting: Vec<_> = snapshot
        .list(BUDGETS, &call.info.namespace)
        .map(|(_, budget)| budget)
        .filter(|one| crate::selector::matches_object(&one.content()["spec"]["selector"], labels))
        .collect();
    let budget = match selecting.as_slice() {
        [] => return Ok(()),
        [budget] => budget,
        _ => {
            let problem = "This pod has more than one PodDisruptionBudget, which the eviction \
                           subresource does not support.";
            return Err(StatusError::new(500, "", problem));
        }
    };
    let resource = call.inner.resource_of_table(BUDGETS)?;
    let info = crate::RequestInfo {
        verb: crate::Verb::Update,
        group: resource.group.clone(),
        version: resource.version.clone(),
        resource: resource.resource.clone(),
        subresource: "status".to_owned(),
        namespace: call.info.namespace.clone(),
        name: budget.name().to_owned(),
    };
    let now = meta::format_time(call.inner.clock.now());
    let mut write = Call::internal(&call.inner, &resource, info, "kube-apiserver");
    write.options.dry_run = call.options.dry_run;
    rest::update_with(&mut write, Change::Patch, |_, present| {
        let mut budget = present.object.clone();
        let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
        if allowed <= 0 {
            return Err(too_disruptive(&budget));
        }
        budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
        if allowed == 1 {
            forbid_more(&mut budget, &now);
        }
        budget["status"]["disruptedPods"][&call.info.name] = json!(now);
        Ok(Made::from(budget))
    })
    .await?;
    Ok(())
}

/// Sets the budget to allow no further evictions.
fn forbid_more(budget: &mut Value, now: &str) {
    let generation = budget["metadata"]["generation"].clone();
    let Some(Value::Array(conditions)) = budget.pointer_mut("/status/conditions") else { return };
    for condition in conditions.iter_mut().filter(|each| each["type"] == "DisruptionAllowed") {
        if condition["status"] != "False" {
            condition["lastTransitionTime"] = json!(now);
        }
        condition["status"] = json!("False");
        condition["reason"] = json!("InsufficientPods");
        condition["observedGeneration"] = generation.clone();
    }
}

/// 429 for an eviction that a budget does not allow.
fn too_disruptive(budget: &Value) -> StatusError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let count = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    StatusError::new(429, "TooManyRequests", message).with_cause(crate::Cause {
        reason: "DisruptionBudget".to_owned(),
        message: format!(
            "The disruption budget {} needs {} healthy pods and has {} currently",
            meta::text(budget, "name"),
            count("desiredHealthy"),
            count("currentHealthy")
        ),
        field: String::new(),
    })
}

/// Checks the options of a log.
fn check_log_options(call: &Call, query: &crate::query::Query) -> Result<(), StatusError> {
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<i64>().ok());
    let mut errors = Vec::new();
    let mut check = |key: &str, least: i64, detail: &str| {
        if let Some(value) = number(key).filter(|value| *value < least) {
            errors.push(crate::FieldError::invalid(key, &value.into(), detail));
        }
    };
    check("tailLines", 0, "must be greater than or equal to 0");
    check("limitBytes", 1, "must be greater than 0");
    let has_time = query.get("sinceTime").is_some_and(|time| !time.is_empty());
    if has_time && number("sinceSeconds").is_some() {
        let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(crate::FieldError::forbidden("", detail));
    } else {
        check("sinceSeconds", 1, "must be greater than 0");
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid("", "PodLogOptions", &call.info.name, &errors))
}

/// Checks that a log is that of one container of the pod.
fn check_log_container(pod: &Value, name: &str, container: &str) -> Result<(), StatusError> {
    let names = |field: &str| -> Vec<String> {
        let containers = pod["spec"][field].as_array().into_iter().flatten();
        containers.map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (regular, init) = (names("containers"), names("initContainers"));
    if container.is_empty() {
        let chosen = &pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"];
        if regular.len() <= 1 || chosen.is_string() {
            return Ok(());
        }
        let others = match init.is_empty() {
            true => String::new(),
            false => format!(" or one of the init containers: [{}]", init.join(" ")),
        };
        return Err(StatusError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]{others}",
            regular.join(" ")
        )));
    }
    let mut all = regular.iter().chain(&init).cloned().chain(names("ephemeralContainers"));
    if all.any(|it| it == container) {
        return Ok(());
    }
    let problem = format!("container {container} is not valid for pod {name}");
    Err(StatusError::bad_request(problem))
}

/// The log of a pod: empty, or an error if no node runs it.
fn log(call: &Call, query: &crate::query::Query) -> Result<Response<Body>, StatusError> {
    check_log_options(call, query)?;
    let pod = call.read()?;
    check_log_container(pod.content(), &call.info.name, query.text("container"))?;
    let scheduled = pod.content()["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty());
    if !scheduled {
        let mut response = Response::new(Body::full(bytes::Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let text = call.inner.stages.book().logs_of(pod.content());
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<usize>().ok());
    let shown = log_part(&text, number("tailLines"), number("limitBytes"));
    Ok(bytes_response(StatusCode::OK, "text/plain", shown.to_vec()))
}

/// The last lines of a log, and of these the first bytes, as a kubelet limits them.
fn log_part(text: &str, lines: Option<usize>, bytes: Option<usize>) -> &[u8] {
    let complete = text.strip_suffix('\n').unwrap_or(text);
    let start = match lines {
        None => 0,
        Some(0) => text.len(),
        Some(lines) => {
            let mut ends = complete.rmatch_indices('\n').skip(lines - 1);
            ends.next().map_or(0, |(end, _)| end + 1)
        }
    };
    let rest = &text.as_bytes()[start..];
    &rest[..bytes.unwrap_or(rest.len()).min(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::log_part;

    #[test]
    fn logs_are_cut_to_the_last_lines_and_then_to_the_first_bytes() {
        let text = "one\ntwo\nthree\n";
        let part = |lines, bytes| std::str::from_utf8(log_part(text, lines, bytes)).unwrap();
        assert_eq!(part(None, None), text);
        assert_eq!(part(Some(1), None), "three\n");
        assert_eq!(part(Some(2), Some(5)), "two\nt");
        assert_eq!(part(Some(9), None), text);
        assert_eq!(part(Some(0), None), "");
        assert_eq!(log_part("no end", Some(1), Some(2)), b"no");
        assert_eq!(log_part("", Some(1), None), b"");
    }
}
