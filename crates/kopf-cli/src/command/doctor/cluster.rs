//! Checks the cluster of the kubeconfig: reachability, version and permissions.

use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use kopf_core::logtext::counted;
use kopf_ui::Operator;
use kube::Client;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::Finding;
use crate::command::connection;
use crate::kubeconfig;

/// A larger clock difference breaks tokens and certificates.
const CLOCKS_DIFFER_MAX: i64 = 60;
/// What an operator usually does, as access reviews: verb, group, resource.
const QUESTIONS: [(&str, &str, &str); 3] = [
    ("list", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("list", "", "namespaces"),
];
/// The timeout of one response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks the cluster.
pub(super) async fn check(context: Option<&str>) -> Vec<Finding> {
    let cluster = connection::cluster(context);
    let client = match cluster.client().await {
        Ok(client) => client,
        Err(error) => {
            let text = connection::texts_of(&error);
            // Without any choice, it may be intended that there is no cluster.
            let is_chosen = context.is_some() || std::env::var_os("KUBECONFIG").is_some();
            return vec![match is_chosen {
                true => {
                    let hint = "check the file of KUBECONFIG and its context";
                    Finding::wrong("kubeconfig", text, hint)
                }
                false => {
                    let hint = "set KUBECONFIG, or start a cluster with `kopf cluster`";
                    Finding::note("kubeconfig", text, hint)
                }
            }];
        }
    };
    let mut findings = vec![Finding::ok("kubeconfig", connection::cluster_name(context))];
    match version(&client).await {
        Ok(found) => findings.extend(found),
        Err(error) => {
            let hint = connection::hint_for(&error);
            findings.push(Finding::wrong("cluster", error, hint));
            return findings;
        }
    }
    for (verb, group, resource) in QUESTIONS {
        findings.push(right(&client, verb, group, resource).await);
    }
    findings.extend(definitions(&client).await);
    findings.extend(webhooks(&client).await);
    findings.extend(operator(context).await);
    findings
}

async fn get(client: &Client, path: &str) -> Result<Value, String> {
    let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    let answer = tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await;
    match answer {
        Ok(answer) => answer.map_err(|error| connection::texts_of(&error)),
        Err(_) => Err(format!("no answer to {path} within {} s", PATIENCE.as_secs())),
    }
}

/// The version of the server, and its clock.
async fn version(client: &Client) -> Result<Vec<Finding>, String> {
    let request = Request::get("/version").body(kube::client::Body::empty());
    let request = request.map_err(|error| error.to_string())?;
    let answer = tokio::time::timeout(PATIENCE, client.send(request)).await;
    let answer = answer.map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?;
    let answer = answer.map_err(|error| connection::texts_of(&error))?;
    let date = answer.headers().get("date").and_then(|date| date.to_str().ok()).map(str::to_owned);
    let found = get(client, "/version").await?;
    let version = found["gitVersion"].as_str().unwrap_or("an unknown version").to_owned();
    let mut findings = vec![Finding::ok("cluster", format!("Kubernetes {version}"))];
    findings.extend(date.and_then(|date| clock(&date, Timestamp::now())));
    Ok(findings)
}

/// The difference of the clocks; `None` if the server does not send its time.
fn clock(date: &str, now: Timestamp) -> Option<Finding> {
    let server = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    let seconds = now.as_second() - server.as_second();
    if seconds.abs() <= CLOCKS_DIFFER_MAX {
        return Some(Finding::ok("clock", "the same as the server's"));
    }
    let text = format!(
        "{} s {} the server's",
        seconds.abs(),
        if seconds > 0 { "ahead of" } else { "behind" }
    );
    Some(Finding::wrong("clock", text, "set the clock of this machine; certificates depend on it"))
}

async fn right(client: &Client, verb: &str, group: &str, resource: &str) -> Finding {
    let subject = format!("right to {verb} {resource}");
    let attributes = json!({"verb": verb, "group": group, "resource": resource});
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes());
    let answer = match request {
        Ok(request) => client.request::<Value>(request).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match answer {
        Ok(answer) if answer["status"]["allowed"] == true => Finding::ok(&subject, "allowed"),
        Ok(_) => Finding::note(
            &subject,
            "not allowed",
            "operators that serve single namespaces do not need it; others do",
        ),
        Err(error) => Finding::note(&subject, error, "the cluster could not be asked"),
    }
}

/// Finds definitions that are not established yet.
async fn definitions(client: &Client) -> Vec<Finding> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let Ok(list) = get(client, path).await else { return Vec::new() };
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let mut findings: Vec<Finding> = items.iter().filter_map(unestablished).collect();
    if findings.is_empty() {
        findings.push(Finding::ok("definitions", counted(items.len(), "custom resource")));
    }
    findings
}

fn unestablished(definition: &Value) -> Option<Finding> {
    let name = definition["metadata"]["name"].as_str()?;
    let conditions = definition["status"]["conditions"].as_array()?;
    let is = |kind: &str| conditions.iter().any(|it| it["type"] == kind && it["status"] == "True");
    if is("Terminating") {
        let hint = "its objects have finalizers: start their operator, so that they can be deleted";
        return Some(Finding::wrong("definitions", format!("{name} is being deleted"), hint));
    }
    if is("Established") {
        return None;
    }
    let refused = conditions.iter().find(|it| it["status"] == "False");
    let why = refused.and_then(|it| it["message"].as_str()).unwrap_or("it is not established");
    Some(Finding::wrong("definitions", format!("{name}: {why}"), "correct the definition"))
}

/// Finds operator webhooks whose Service does not exist: they reject everything.
async fn webhooks(client: &Client) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut count = 0;
    for plural in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let Ok(list) = get(client, &path).await else { continue };
        for configuration in list["items"].as_array().into_iter().flatten() {
            for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
                count += 1;
                findings.extend(unreachable(client, webhook).await);
            }
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok("webhooks", format!("{count} configured")));
    }
    findings
}

async fn unreachable(client: &Client, webhook: &Value) -> Option<Finding> {
    let service = &webhook["clientConfig"]["service"];
    let (namespace, name) = (service["namespace"].as_str()?, service["name"].as_str()?);
    let title = webhook["name"].as_str().unwrap_or_default();
    let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
    if get(client, &path).await.is_ok() {
        return None;
    }
    let text = format!("{title} points to the Service {namespace}/{name}, which does not exist");
    let hint = match webhook["failurePolicy"] == "Ignore" {
        true => "remove the configuration, or deploy its operator",
        false => "its objects cannot be written: remove the configuration, or deploy its operator",
    };
    Some(Finding::wrong("webhooks", text, hint))
}

/// Checks the operator of the cluster, if the kubeconfig has its address.
async fn operator(context: Option<&str>) -> Option<Finding> {
    let config = Kubeconfig::read().ok()?;
    let url = kubeconfig::operator_url(&config, context)?;
    let operator = Operator::at(&url).ok()?;
    Some(match operator.is_ready().await {
        true => Finding::ok("operator", format!("ready at {url}")),
        false => Finding::wrong(
            "operator",
            format!("{url} is not ready, or does not answer"),
            "start it again; the kubeconfig may be that of an operator that has ended",
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{clock, unestablished};
    use crate::command::doctor::Verdict;

    #[test]
    fn clocks_may_differ_a_little() {
        let now = "2026-11-17T20:00:30Z".parse().unwrap();
        assert_eq!(clock("Tue, 17 Nov 2026 20:00:00 GMT", now).unwrap().verdict, Verdict::Ok);
        let wrong = clock("Tue, 17 Nov 2026 19:00:00 GMT", now).unwrap();
        assert_eq!(
            (wrong.verdict, wrong.text.as_str()),
            (Verdict::Wrong, "3630 s ahead of the server's")
        );
        assert_eq!(clock("some day", now), None);
    }

    #[test]
    fn definitions_that_do_not_work_are_reported_with_the_reason() {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "message": "names conflict"});
        let definition = |conditions| json!({"metadata": {"name": "as.x"}, "status": {"conditions": conditions}});
        assert_eq!(unestablished(&definition(json!([condition("Established", "True")]))), None);
        let refused = definition(json!([condition("NamesAccepted", "False")]));
        assert_eq!(unestablished(&refused).unwrap().text, "as.x: names conflict");
        let both = json!([condition("Established", "True"), condition("Terminating", "True")]);
        assert_eq!(unestablished(&definition(both)).unwrap().verdict, Verdict::Wrong);
    }
}
