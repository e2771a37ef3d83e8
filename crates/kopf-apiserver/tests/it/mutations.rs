//! MutatingAdmissionPolicies: both kinds of patches, what their expressions see, and failures.

use kopf_apiserver::Server;
use serde_json::{Value, json};

const POLICIES: &str = "mutatingadmissionpolicies.admissionregistration.k8s.io";
const BINDINGS: &str = "mutatingadmissionpolicybindings.admissionregistration.k8s.io";

struct World {
    server: Server,
}

impl World {
    fn new() -> Self {
        Self { server: Server::builder().controllers(false).mutating_policies(true).build() }
    }

    async fn make(&self, table: &str, object: Value) -> Result<(), String> {
        let created = self.server.local().create(table, "", object).await;
        created.map(drop).map_err(|error| error.message)
    }

    /// A policy about ConfigMaps, with a binding.
    async fn bind(&self, name: &str, spec: Value) -> Result<(), String> {
        let mut policy = json!({"metadata": {"name": name}, "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]},
        }});
        for (key, value) in spec.as_object().unwrap() {
            policy["spec"][key] = value.clone();
        }
        self.make(POLICIES, policy).await?;
        let binding =
            json!({"metadata": {"name": format!("{name}-b")}, "spec": {"policyName": name}});
        self.make(BINDINGS, binding).await
    }

    async fn create(&self, name: &str, data: Value) -> Result<Value, String> {
        let object = json!({"metadata": {"name": name, "labels": {"given": "yes"}}, "data": data});
        let created = self.server.local().create("configmaps", "default", object).await;
        created.map(|stored| stored.content().clone()).map_err(|error| error.message)
    }
}

fn apply(expression: &str) -> Value {
    json!({"mutations": [{"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": expression}}]})
}

fn json_patch(expression: &str) -> Value {
    json!({"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]})
}

#[tokio::test]
async fn configurations_are_laid_over_objects() {
    let world = World::new();
    let mut spec = apply(
        "Object{metadata: Object.metadata{labels: {'size': string(variables.n)}}, \
         data: {'added': request.operation}}",
    );
    spec["variables"] = json!([{"name": "n", "expression": "size(object.data)"}]);
    spec["matchConditions"] = json!([{"name": "c", "expression": "object.metadata.name != 'not'"}]);
    world.bind("p", spec).await.unwrap();
    let changed = world.create("a", json!({"k": "v"})).await.unwrap();
    assert_eq!(changed["metadata"]["labels"], json!({"given": "yes", "size": "1"}));
    assert_eq!(changed["data"], json!({"k": "v", "added": "CREATE"}));
    let spared = world.create("not", json!({"k": "v"})).await.unwrap();
    assert_eq!(spared["data"], json!({"k": "v"}));
}

#[tokio::test]
async fn json_patches_are_made_of_typed_steps() {
    let world = World::new();
    let spec = json_patch(
        "[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, \
         JSONPatch{op: 'replace', path: '/metadata/labels', value: {'given': 'no'}}, \
         JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a.b/c'), value: 'x'}]",
    );
    world.bind("p", spec).await.unwrap();
    let changed = world.create("a", json!({"k": "v"})).await.unwrap();
    assert_eq!(changed["metadata"]["labels"], json!({"given": "no", "a.b/c": "x"}));
    assert_eq!(changed["data"], json!({"k": "v"}));
    // If a `test` operation fails, the patch is not applied.
    let kept = world.create("b", json!({"k": "other"})).await.unwrap();
    assert_eq!(kept["data"], json!({"k": "other"}));
}

#[tokio::test]
async fn policies_look_again_only_if_they_ask_for_it() {
    let world = World::new();
    let count = "Object{data: {'seen': string(size(object.data))}}";
    let mut again = apply(count);
    again["reinvocationPolicy"] = json!("IfNeeded");
    world.bind("a", again).await.unwrap();
    world.bind("b", apply("Object{data: {'more': 'x'}}")).await.unwrap();
    let changed = world.create("x", json!({"k": "v"})).await.unwrap();
    assert_eq!(changed["data"]["seen"], "3", "counted again with what `b` has added");
    let world = World::new();
    world.bind("a", apply(count)).await.unwrap();
    world.bind("b", apply("Object{data: {'more': 'x'}}")).await.unwrap();
    let changed = world.create("x", json!({"k": "v"})).await.unwrap();
    assert_eq!(changed["data"]["seen"], "1");
}

#[tokio::test]
async fn failures_refuse_the_write_unless_they_are_ignored() {
    let world = World::new();
    world.bind("p", apply("Object{data: {'x': object.data.none}}")).await.unwrap();
    let refused = world.create("a", json!({"k": "v"})).await.unwrap_err();
    assert!(refused.contains("policy 'p' with binding 'p-b' denied request:"), "{refused}");
    assert!(refused.contains("no such key: none"), "{refused}");
    let world = World::new();
    let mut spec = apply("Object{data: {'x': object.data.none}}");
    spec["failurePolicy"] = json!("Ignore");
    world.bind("p", spec).await.unwrap();
    world.create("a", json!({"k": "v"})).await.unwrap();
    let world = World::new();
    let atomic = "Object{metadata: Object.metadata{ownerReferences: []}, immutable: false}";
    world.bind("p", apply(&atomic.replace("immutable: false", "nope: 1"))).await.unwrap();
    let refused = world.create("a", json!({})).await.unwrap_err();
    assert!(refused.contains(".nope: field not declared in schema"), "{refused}");
}

#[tokio::test]
async fn expressions_are_compiled_when_a_policy_is_written() {
    let world = World::new();
    let refusal = |spec: Value| {
        let world = &world;
        async move { world.bind("bad", spec).await.unwrap_err() }
    };
    let message = refusal(apply("Other{x: 1}")).await;
    assert!(message.contains("undeclared reference to 'Other'"), "{message}");
    let message = refusal(apply("[JSONPatch{op: 'add'}]")).await;
    assert!(message.contains("must evaluate to Object but got list(JSONPatch)"), "{message}");
    let message = refusal(json_patch("[JSONPatch{odd: 'add'}]")).await;
    assert!(message.contains("undefined field 'odd'"), "{message}");
    let message = refusal(json!({"mutations": []})).await;
    assert!(message.contains("spec.mutations: Required value"), "{message}");
    let message = refusal(json!({"mutations": [{"patchType": "JSONPatch"}]})).await;
    assert!(message.contains("spec.mutations[0].jsonPatch: Required value"), "{message}");
}

#[tokio::test]
async fn parameters_are_those_of_the_binding() {
    let world = World::new();
    let params = json!({"metadata": {"name": "conf"}, "data": {"team": "blue"}});
    world.server.local().create("configmaps", "default", params).await.unwrap();
    let mut policy = json!({"metadata": {"name": "p"}, "spec": {
        "reinvocationPolicy": "Never", "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["configmaps"]}]},
    }});
    policy["spec"]["mutations"] =
        apply("Object{metadata: Object.metadata{labels: {'team': params.data.team}}}")["mutations"]
            .clone();
    world.make(POLICIES, policy).await.unwrap();
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p",
        "paramRef": {"name": "conf", "namespace": "default", "parameterNotFoundAction": "Deny"}}});
    world.make(BINDINGS, binding).await.unwrap();
    let changed = world.create("a", json!({})).await.unwrap();
    assert_eq!(changed["metadata"]["labels"]["team"], "blue");
}

#[tokio::test]
async fn without_the_feature_there_are_no_such_policies() {
    let server = Server::builder().controllers(false).build();
    let created = server.local().create(POLICIES, "", json!({"metadata": {"name": "p"}})).await;
    assert_eq!(created.unwrap_err().code, 404);
}
