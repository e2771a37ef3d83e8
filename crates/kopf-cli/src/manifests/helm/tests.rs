use std::sync::Arc;

use kopf_core::handler::WebhookOptions;
use kopf_core::{Call, Handler, HandlerKind, Invocation, Invoke, Output, Settings};
use kopf_model::Selector;
use serde_json::{Value, json};

use super::{ChartFile, files};
use crate::manifests::Options;

struct Nothing;

impl Invoke for Nothing {
    fn invoke(&self, _: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| Ok(Output::Nothing)))
    }
}

fn chart(kind: HandlerKind) -> Vec<ChartFile> {
    chart_of(kind, 1)
}

fn chart_of(kind: HandlerKind, replicas: u32) -> Vec<ChartFile> {
    let selector = Selector::exact("example.com", "v1", "greetings");
    let mut handler = Handler::new("fn", kind, Arc::new(Nothing)).for_resources(selector);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "greetings.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Greeting", "plural": "greetings"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    });
    handler.definition = Some(definition.into());
    let options = Options {
        name: "demo".into(),
        namespace: "operators".into(),
        serves: None,
        image: "you/demo:7".into(),
        program: "demo".into(),
        replicas,
        shards: false,
        secure_metrics: false,
        metrics_from: Vec::new(),
    };
    files(&[handler], &Settings::default(), &options).expect("JSON can be written as YAML")
}

fn text<'a>(files: &'a [ChartFile], path: &str) -> &'a str {
    &files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {path}")).text
}

#[test]
fn no_word_and_no_name_of_this_operator_is_left() {
    for file in chart(HandlerKind::Create) {
        assert!(!file.text.contains("kopf-word"), "{}: {}", file.path, file.text);
        let is_template = file.path.starts_with("templates/") && file.path.ends_with(".yaml");
        assert!(
            !is_template || !file.text.contains("name: demo\n"),
            "{}: {}",
            file.path,
            file.text
        );
    }
}

#[test]
fn braces_of_alerts_are_left_to_prometheus() {
    let files = chart(HandlerKind::Create);
    let alerts = text(&files, "templates/alerts.yaml");
    assert!(alerts.contains("{{ \"{{\" }} $labels.resource {{ \"}}\" }}"), "{alerts}");
}

#[test]
fn values_are_those_of_the_schema() {
    let files = chart(HandlerKind::Create);
    let values: Value = serde_norway::from_str(text(&files, "values.yaml")).unwrap();
    let schema: Value = serde_json::from_str(text(&files, "values.schema.json")).unwrap();
    let known = schema["properties"].as_object().unwrap();
    for name in values.as_object().unwrap().keys() {
        assert!(known.contains_key(name), "{name}");
    }
    assert_eq!(
        values["image"],
        json!({"repository": "you/demo", "tag": "7", "pullPolicy": "IfNotPresent"})
    );
}

#[test]
fn blocks_of_templates_are_closed() {
    for file in chart(HandlerKind::Validate(WebhookOptions::default())) {
        let opened = ["{{- if", "{{- range", "{{- with", "{{- define"];
        let opened: usize = opened.iter().map(|word| file.text.matches(word).count()).sum();
        assert_eq!(opened, file.text.matches("{{- end }}").count(), "{}: {}", file.path, file.text);
    }
}

#[test]
fn replicas_know_themselves_and_have_one_role_for_leases() {
    let files = chart_of(HandlerKind::Create, 2);
    let deployment = text(&files, "templates/deployment.yaml");
    assert!(deployment.contains("name: POD_NAME\n"), "{deployment}");
    assert!(deployment.contains("$.Values.env"), "{deployment}");
    assert!(!deployment.contains("PodDisruptionBudget"), "{deployment}");
    let rights = text(&files, "templates/rbac.yaml");
    let (before, inside) = rights.split_once("{{- range $watched").expect("a range");
    let (inside, _) = inside.split_once("{{- end }}").expect("its end");
    assert!(before.contains("-leases"), "{before}");
    assert!(!inside.contains("-leases"), "{inside}");
    let values: Value = serde_norway::from_str(text(&files, "values.yaml")).expect("YAML");
    assert_eq!(values["replicas"], 2);
    assert_eq!(values["podDisruptionBudget"]["enabled"], true);
}

#[test]
fn the_peers_of_the_network_policy_are_a_value() {
    let files = chart(HandlerKind::Create);
    let policy = text(&files, "templates/networkpolicy.yaml");
    let peers = "    {{- with $.Values.networkPolicy.metricsFrom }}\n    from:\n";
    assert!(policy.contains(peers.trim_start()), "{policy}");
    let values: Value = serde_norway::from_str(text(&files, "values.yaml")).expect("YAML");
    assert_eq!(values["networkPolicy"], json!({"enabled": false, "metricsFrom": []}));
}
