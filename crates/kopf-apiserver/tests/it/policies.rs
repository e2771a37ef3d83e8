//! ValidatingAdmissionPolicies: what their expressions see, and the effects of bindings.

use http_body_util::{BodyExt, Full};
use kopf_apiserver::{Server, User};
use serde_json::{Value, json};
use tower::ServiceExt;

const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "validatingadmissionpolicybindings.admissionregistration.k8s.io";

struct World {
    server: Server,
}

/// The response to a write.
struct Answer {
    status: u16,
    message: String,
    warnings: Vec<String>,
}

impl World {
    async fn new() -> Self {
        let server = Server::builder().controllers(false).rbac(true).build();
        let labels = json!({"stage": "prod"});
        let namespace = json!({"metadata": {"name": "ns", "labels": labels}});
        server.local().create("namespaces", "", namespace).await.unwrap();
        Self { server }
    }

    async fn make(&self, table: &str, namespace: &str, object: Value) {
        let created = self.server.local().create(table, namespace, object).await;
        created.unwrap_or_else(|error| panic!("create in {table}: {error}"));
    }

    /// A policy about ConfigMaps, with a binding.
    async fn bind(&self, name: &str, spec: Value, binding: Value) {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]);
        let mut policy = json!({"metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": rules}}});
        merge(&mut policy["spec"], spec);
        self.make(POLICIES, "", policy).await;
        let mut object = json!({"metadata": {"name": format!("{name}-b")},
            "spec": {"policyName": name, "validationActions": ["Deny"]}});
        merge(&mut object["spec"], binding);
        self.make(BINDINGS, "", object).await;
    }

    async fn create(&self, name: &str, data: Value) -> Answer {
        let body = json!({"metadata": {"name": name}, "data": data}).to_string();
        let request = http::Request::post("/api/v1/namespaces/ns/configmaps")
            .header("content-type", "application/json")
            .body(Full::new(bytes::Bytes::from(body)))
            .unwrap();
        let service = self.server.service_as(User::new("kim", ["system:masters"]));
        let response = service.oneshot(request).await.unwrap();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        let message = body["message"].as_str().unwrap_or_default().to_owned();
        Answer { status, message, warnings }
    }
}

fn merge(into: &mut Value, from: Value) {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
}

fn validation(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[tokio::test]
async fn variables_and_messages_are_made_of_expressions() {
    let world = World::new().await;
    let spec = json!({
        "variables": [
            {"name": "size", "expression": "int(object.data.size)"},
            {"name": "isLarge", "expression": "variables.size > 10"},
        ],
        "validations": [{
            "expression": "!has(object.data) || !variables.isLarge",
            "messageExpression": "'size is ' + string(variables.size) + ', but must be 10 at most'",
            "reason": "Forbidden",
        }],
    });
    world.bind("sizes", spec, json!({})).await;
    assert_eq!(world.create("small", json!({"size": "3"})).await.status, 201);
    assert_eq!(world.create("none", json!({})).await.status, 201, "variables are lazy");
    let answer = world.create("large", json!({"size": "11"})).await;
    assert_eq!(answer.status, 403);
    assert_eq!(
        answer.message,
        "configmaps \"large\" is forbidden: ValidatingAdmissionPolicy 'sizes' with binding \
         'sizes-b' denied request: size is 11, but must be 10 at most"
    );
    let answer = world.create("odd", json!({"size": "x"})).await;
    assert_eq!(answer.status, 422, "errors refuse unless they are to be ignored");
    assert!(answer.message.contains("composited variable \"isLarge\" fails"), "{}", answer.message);
}

#[tokio::test]
async fn parameters_come_from_objects_that_bindings_name_or_select() {
    let world = World::new().await;
    let limit = |name: &str, most: &str| json!({"metadata": {"name": name, "labels": {"limit": "yes"}}, "data": {"most": most}});
    for (name, most) in [("ten", "10"), ("five", "5")] {
        world.make("configmaps", "default", limit(name, most)).await;
    }
    let mut spec =
        validation("!has(object.data) || int(object.data.size) <= int(params.data.most)");
    spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let reference = json!({"name": "ten", "namespace": "default",
        "parameterNotFoundAction": "Deny"});
    world.bind("named", spec.clone(), json!({"paramRef": reference})).await;
    assert_eq!(world.create("a", json!({"size": "10"})).await.status, 201);
    assert_eq!(world.create("b", json!({"size": "11"})).await.status, 422);
    let reference = json!({"selector": {"matchLabels": {"limit": "yes"}}, "namespace": "default",
        "parameterNotFoundAction": "Allow"});
    world.bind("selected", spec.clone(), json!({"paramRef": reference})).await;
    let answer = world.create("c", json!({"size": "7"})).await;
    assert_eq!(answer.status, 422, "all of them have to be kept to");
    assert!(answer.message.contains("'selected'"), "{}", answer.message);
    let reference = json!({"name": "absent", "parameterNotFoundAction": "Deny"});
    world.bind("absent", spec, json!({"paramRef": reference})).await;
    let answer = world.create("d", json!({})).await;
    assert!(
        answer.message.ends_with(
            "failed to configure binding: no params found for policy binding with `Deny` \
             parameterNotFoundAction"
        ),
        "{}",
        answer.message
    );
}

#[tokio::test]
async fn expressions_see_the_namespace_the_request_and_rights() {
    let world = World::new().await;
    for (name, expression, expected) in [
        ("stage", "namespaceObject.metadata.labels.stage == 'prod'", 201),
        ("hidden", "!has(namespaceObject.metadata.uid)", 201),
        ("user", "request.userInfo.username == 'kim' && request.operation == 'CREATE'", 201),
        (
            "mine",
            "authorizer.group('').resource('pods').namespace('ns').check('delete').allowed()",
            201,
        ),
        (
            "theirs",
            "authorizer.serviceAccount('ns', 'x').group('').resource('pods').check('delete').allowed()",
            422,
        ),
    ] {
        world.bind(name, validation(expression), json!({})).await;
        let answer = world.create(name, json!({})).await;
        assert_eq!(answer.status, expected, "{name}: {}", answer.message);
    }
}

#[tokio::test]
async fn conditions_decide_whether_a_policy_applies_and_their_errors_refuse() {
    let world = World::new().await;
    let mut spec = validation("false");
    spec["matchConditions"] = json!([{"name": "marked", "expression": "has(object.data) && object.data.marked == 'yes'"}]);
    world.bind("marked", spec.clone(), json!({})).await;
    assert_eq!(world.create("plain", json!({})).await.status, 201);
    assert_eq!(world.create("marked", json!({"marked": "yes"})).await.status, 422);
    spec["matchConditions"] =
        json!([{"name": "broken", "expression": "object.data.absent == 'x'"}]);
    world.bind("broken", spec.clone(), json!({})).await;
    let answer = world.create("plain2", json!({"a": "b"})).await;
    assert_eq!(answer.status, 422);
    assert!(
        answer.message.contains("resulted in error: no such key: absent"),
        "{}",
        answer.message
    );
    let world = World::new().await;
    spec["failurePolicy"] = json!("Ignore");
    world.bind("ignored", spec, json!({})).await;
    assert_eq!(world.create("plain", json!({"a": "b"})).await.status, 201);
}

#[tokio::test]
async fn bindings_warn_instead_and_only_where_they_match() {
    let world = World::new().await;
    let narrow = json!({"validationActions": ["Warn", "Audit"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"stage": "prod"}}}});
    world.bind("warns", validation("object.metadata.name != 'bad'"), narrow).await;
    let elsewhere = json!({
        "matchResources": {"namespaceSelector": {"matchLabels": {"stage": "test"}}}});
    world.bind("elsewhere", validation("false"), elsewhere).await;
    let answer = world.create("bad", json!({})).await;
    assert_eq!(answer.status, 201);
    assert_eq!(
        answer.warnings,
        [
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'warns' with binding 'warns-b': \
          failed expression: object.metadata.name != 'bad'\""
        ]
    );
}
