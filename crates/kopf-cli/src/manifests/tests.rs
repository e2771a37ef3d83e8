//! Tests that every document is valid in Kubernetes, and that the kustomization lists every file.

use std::sync::Arc;

use expect_test::expect;
use kopf_core::handler::{ConvertOptions, WebhookOptions};
use kopf_core::{Call, Handler, HandlerKind, Invocation, Invoke, Output, Settings};
use kopf_model::Selector;
use serde_json::{Value, json};

use super::{Content, File, Options, extras, files, to_yaml};

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _call: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn handler(kind: HandlerKind) -> Handler {
    let selector = Selector::exact("example.com", "v1", "greetings");
    Handler::new("fn", kind, Arc::new(Nothing)).for_resources(selector)
}

fn options(serves: Option<Vec<String>>) -> Options {
    Options {
        name: "demo".into(),
        namespace: "operators".into(),
        serves,
        image: "demo:latest".into(),
        program: "demo".into(),
        replicas: 1,
        shards: false,
        secure_metrics: false,
        metrics_from: Vec::new(),
    }
}

fn files_of(handlers: &[Handler], options: &Options) -> Vec<File> {
    files(handlers, &Settings::default(), options)
}

fn documents(files: &[File]) -> Vec<Value> {
    let of = |file: &File| match &file.content {
        Content::Documents(documents) => documents.clone(),
        Content::Kustomization(_) | Content::Dockerfile(_) => Vec::new(),
    };
    files.iter().flat_map(of).collect()
}

fn kinds(files: &[File]) -> String {
    let kind = |it: &Value| format!("{} {}", it["kind"], it["metadata"]["namespace"]);
    documents(files).iter().map(kind).collect::<Vec<_>>().join("\n")
}

fn container(files: &[File]) -> Value {
    let documents = documents(files);
    let deployment = documents.iter().find(|it| it["kind"] == "Deployment").unwrap();
    deployment["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn namespaced_operators_get_a_role_in_each_namespace() {
    let serves = Some(vec!["a".into(), "b".into()]);
    expect![[r#"
        "Namespace" null
        "ServiceAccount" "operators"
        "ClusterRole" null
        "ClusterRoleBinding" null
        "Role" "a"
        "RoleBinding" "a"
        "Role" "b"
        "RoleBinding" "b"
        "Deployment" "operators""#]]
    .assert_eq(&kinds(&files_of(&[handler(HandlerKind::Create)], &options(serves))));
}

#[test]
fn cluster_wide_operators_get_one_role() {
    let files = files_of(&[handler(HandlerKind::Create)], &options(None));
    expect![[r#"
        "Namespace" null
        "ServiceAccount" "operators"
        "ClusterRole" null
        "ClusterRoleBinding" null
        "Deployment" "operators""#]]
    .assert_eq(&kinds(&files));
    let arguments = container(&files)["args"].clone();
    let wanted = json!([
        "run",
        "--standalone",
        "--liveness=http://0.0.0.0:8080/healthz",
        "--all-namespaces"
    ]);
    assert_eq!(arguments, wanted);
}

#[test]
fn installations_in_several_namespaces_do_not_share_rights() {
    let names = |namespace: &str| {
        let options = Options { namespace: namespace.into(), ..options(None) };
        let documents = documents(&files_of(&[handler(HandlerKind::Create)], &options));
        let is_wide = |it: &&Value| it["metadata"]["namespace"].is_null();
        let named = |it: &Value| format!("{} {}", it["kind"], it["metadata"]["name"]);
        documents.iter().filter(is_wide).map(named).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        "Namespace" "operators"
        "ClusterRole" "operators:demo"
        "ClusterRoleBinding" "operators:demo""#]]
    .assert_eq(&names("operators"));
    expect![[r#"
        "ClusterRole" "demo"
        "ClusterRoleBinding" "demo""#]]
    .assert_eq(&names("default"));
}

#[test]
fn the_namespace_default_is_not_ours_to_define() {
    let options = Options { namespace: "default".into(), ..options(None) };
    assert!(!kinds(&files_of(&[], &options)).contains("Namespace"));
}

#[test]
fn webhooks_get_a_service() {
    let webhook = handler(HandlerKind::Validate(WebhookOptions::default()));
    let files = files_of(&[webhook], &options(None));
    let service = documents(&files).into_iter().find(|it| it["kind"] == "Service").unwrap();
    let port = kopf_core::endpoint::SERVICE_PORT;
    let expected = json!([{"name": "webhooks", "port": port, "targetPort": "webhooks"}]);
    assert_eq!(service["spec"]["ports"], expected);
    let container = container(&files);
    assert_eq!(container["ports"][1], json!({"name": "webhooks", "containerPort": 9443}));
    let arguments = container["args"].to_string();
    assert!(arguments.contains("--webhook=0.0.0.0:9443"), "{arguments}");
    assert!(arguments.contains("--webhook-service=operators/demo"), "{arguments}");
}

#[test]
fn converted_definitions_refer_to_the_service_from_the_start() {
    fn version(name: &str) -> Value {
        let names = json!({"plural": "greetings"});
        let metadata = json!({"name": "greetings.example.com"});
        let version = json!({"name": name, "storage": true});
        json!({
            "kind": "CustomResourceDefinition", "metadata": metadata,
            "spec": {"group": "example.com", "names": names, "versions": [version]},
        })
    }
    let to = Selector::exact("example.com", "v2", "greetings");
    let kind = HandlerKind::Convert(ConvertOptions { to, definition: Some(version("v2").into()) });
    let up = Handler { definition: Some(version("v1").into()), ..handler(kind) };
    let files = files_of(&[up], &options(None));
    assert!(kinds(&files).contains("Service"), "the cluster has to get to the operator");
    let documents = documents(&files);
    let crds: Vec<&Value> =
        documents.iter().filter(|it| it["kind"] == "CustomResourceDefinition").collect();
    assert_eq!(crds.len(), 1, "both versions are in one definition");
    let service = json!({
        "namespace": "operators", "name": "demo", "port": 443,
        "path": "/convert/greetings.example.com",
    });
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": service}, "conversionReviewVersions": ["v1"],
    }});
    assert_eq!(crds[0]["spec"]["conversion"], conversion);
    let versions = json!([{"name": "v2", "storage": true}, {"name": "v1", "storage": false}]);
    assert_eq!(crds[0]["spec"]["versions"], versions);
    let role = documents.iter().find(|it| it["kind"] == "ClusterRole").unwrap();
    let rule = json!({
        "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
        "resourceNames": ["greetings.example.com"], "verbs": ["get", "patch"],
    });
    assert!(role["rules"].as_array().unwrap().contains(&rule), "{role:#}");
}

#[test]
fn the_kustomization_names_all_manifests() {
    let files = files_of(&[handler(HandlerKind::Create)], &options(None));
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let wanted =
        ["namespace.yaml", "rbac.yaml", "deployment.yaml", "kustomization.yaml", "Dockerfile"];
    assert_eq!(names, wanted);
    let Content::Kustomization(kustomization) = &files[3].content else { panic!("{files:?}") };
    assert_eq!(kustomization["resources"], json!(wanted[..3]));
}

#[test]
fn the_image_runs_the_program_without_rights() {
    let files = files_of(&[], &options(None));
    expect![[r#"
        FROM rust:1-alpine AS build
        RUN apk add --no-cache musl-dev
        WORKDIR /src
        COPY . .
        RUN cargo build --release --bin demo

        FROM scratch
        COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
        COPY --from=build /src/target/release/demo /operator
        USER 65532
        ENTRYPOINT ["/operator"]
    "#]]
    .assert_eq(&files.last().unwrap().text().unwrap());
}

#[test]
fn several_documents_make_one_stream() {
    let text = to_yaml(&[json!({"a": 1}), json!({"b": 2})]).unwrap();
    assert_eq!(text, "a: 1\n---\nb: 2\n");
}

#[test]
fn the_rights_behind_roles_are_explained_where_they_are_granted() {
    let children = vec![Selector::exact("rbac.authorization.k8s.io", "v1", "roles")];
    let files = files_of(&[Handler { children, ..handler(HandlerKind::Desired) }], &options(None));
    let rights = files.iter().find(|file| file.name == "rbac.yaml").unwrap().text().unwrap();
    let comment: Vec<&str> = rights.lines().take_while(|line| line.starts_with('#')).collect();
    expect![[r#"
        # `fn` makes roles, and does not declare what these grant. Kubernetes lets nobody grant what they do
        # not hold, except with the verb `escalate`, which is as good as all rights. Declare it by `grants =
        # ["get,list pods"]` at the handler, and the operator gets these rights instead."#]]
    .assert_eq(&comment.join("\n"));
    assert!(rights.contains("- escalate\n"), "{rights}");
}

#[test]
fn replicas_elect_a_leader_and_may_keep_leases_where_they_live() {
    let options = Options { replicas: 3, ..options(Some(vec!["a".into()])) };
    let files = files_of(&[handler(HandlerKind::Create)], &options);
    let documents = documents(&files);
    let deployment = documents.iter().find(|it| it["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"]["strategy"]["type"], "RollingUpdate");
    assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    assert!(deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"].is_object());
    let arguments = container(&files)["args"].clone();
    assert!(arguments.as_array().unwrap().contains(&json!("--leader-elect=demo")), "{arguments}");
    assert_eq!(container(&files)["env"][0]["name"], "POD_NAME");
    let is_leases = |it: &&Value| it["metadata"]["name"] == "demo-leases" && it["kind"] == "Role";
    let role = documents.iter().find(is_leases).unwrap();
    assert_eq!(role["metadata"]["namespace"], "operators");
    assert_eq!(role["rules"][0]["apiGroups"], json!(["coordination.k8s.io"]));
    assert_eq!(role["rules"][0]["verbs"], json!(["create", "get", "list", "watch", "patch"]));
    let budget = documents.iter().find(|it| it["kind"] == "PodDisruptionBudget").unwrap();
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
}

#[test]
fn replicas_with_webhooks_may_keep_their_certificate() {
    let options = Options { replicas: 2, ..options(None) };
    let files = files_of(&[handler(HandlerKind::Validate(WebhookOptions::default()))], &options);
    let documents = documents(&files);
    let is_leases = |it: &&Value| it["metadata"]["name"] == "demo-leases" && it["kind"] == "Role";
    let role = documents.iter().find(is_leases).unwrap();
    assert_eq!(role["rules"][2]["verbs"], json!(["create"]));
    assert_eq!(role["rules"][3]["resourceNames"], json!(["demo-webhooks"]));
    assert_eq!(role["rules"][3]["verbs"], json!(["get", "patch"]));
}

#[test]
fn a_single_replica_needs_no_leases() {
    let files = files_of(&[handler(HandlerKind::Create)], &options(None));
    assert!(!kinds(&files).contains("PodDisruptionBudget"));
    assert!(documents(&files).iter().all(|it| it["metadata"]["name"] != "demo-leases"));
}

#[test]
fn the_network_policy_limits_metrics_to_namespaces() {
    let everyone = extras::network_policy(&options(None), true);
    expect![[r#"
        - ports:
          - protocol: TCP
            port: 8080
        - ports:
          - protocol: TCP
            port: 9443
    "#]]
    .assert_eq(&to_yaml(&[everyone["spec"]["ingress"].clone()]).unwrap());
    let metrics_from = vec!["monitoring".to_owned()];
    let options = Options { secure_metrics: true, metrics_from, ..options(None) };
    let limited = extras::network_policy(&options, false);
    expect![[r#"
        - ports:
          - protocol: TCP
            port: 8443
          from:
          - namespaceSelector:
              matchLabels:
                kubernetes.io/metadata.name: monitoring
        - ports:
          - protocol: TCP
            port: 8080
    "#]]
    .assert_eq(&to_yaml(&[limited["spec"]["ingress"].clone()]).unwrap());
}
