//! The kinds that random sequences write, and random content for each.
//!
//! Pure. `whole` is the content of a create; `partial` is what one of several managers would apply;
//! `strategic` uses the directives of that patch type.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::schema;
use crate::differential::script::{Step, Wait};

pub(super) struct Kind {
    pub(super) plural: &'static str,
    pub(super) api_version: String,
    pub(super) kind: &'static str,
    pub(super) path: String,
    content: Content,
}

enum Content {
    Data,
    PodTemplate,
    Service,
    Custom(Value),
}

/// Picks a kind; custom ones include the steps that define them.
pub(super) fn choose(rng: &mut Rng, seed: u64) -> (Kind, Vec<Step>) {
    match seed % 6 {
        0 => (core("configmaps", "ConfigMap", Content::Data), Vec::new()),
        1 => (core("podtemplates", "PodTemplate", Content::PodTemplate), Vec::new()),
        2 => (core("services", "Service", Content::Service), Vec::new()),
        3 => (core("secrets", "Secret", Content::Data), Vec::new()),
        _ => custom(rng),
    }
}

fn core(plural: &'static str, kind: &'static str, content: Content) -> Kind {
    let path = format!("/api/v1/namespaces/${{ns}}/{plural}");
    Kind { plural, api_version: "v1".to_owned(), kind, path, content }
}

fn custom(rng: &mut Rng) -> (Kind, Vec<Step>) {
    let spec = schema::random(rng);
    let definition = schema::definition(rng, &spec);
    let group = "${ns}.kopf.dev";
    let path = format!("/apis/{group}/v1/namespaces/${{ns}}/widgets");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let served = Wait { status: Some(200), ..Wait::default() };
    let named = Wait { has: Some("InitialNamesAccepted".into()), ..Wait::default() };
    let steps = vec![
        Step::new("POST", definitions).with_body(definition),
        Step::new("GET", format!("{definitions}/widgets.{group}")).waiting(named),
        Step::new("GET", path.as_str()).waiting(served),
    ];
    let content = Content::Custom(spec);
    let api_version = format!("{group}/v1");
    (Kind { plural: "widgets", api_version, kind: "Widget", path, content }, steps)
}

impl Kind {
    pub(super) fn is_custom(&self) -> bool {
        matches!(self.content, Content::Custom(_))
    }

    pub(super) fn whole(&self, rng: &mut Rng) -> Value {
        match &self.content {
            Content::Data => data(rng),
            Content::PodTemplate => json!({"template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": containers(rng)},
            }}),
            Content::Service => json!({"spec": {
                "selector": {"app": "x"},
                "ports": service_ports(rng),
            }}),
            Content::Custom(spec) => json!({"spec": schema::value(rng, spec)}),
        }
    }

    pub(super) fn partial(&self, rng: &mut Rng) -> Value {
        match &self.content {
            Content::PodTemplate if rng.bool() => json!({"template": {"spec": {
                "nodeSelector": {pick(rng, &["disk", "zone"]): pick(rng, &["p", "q"])},
            }}}),
            Content::Service if rng.bool() => json!({"spec": {
                "sessionAffinity": pick(rng, &["None", "ClientIP"]),
            }}),
            _ => self.whole(rng),
        }
    }

    pub(super) fn strategic(&self, rng: &mut Rng) -> Value {
        let Content::PodTemplate = self.content else { return self.partial(rng) };
        let name = pick(rng, &["c1", "c2"]);
        let spec = match rng.u32(0..6) {
            0 => json!({"containers": [{"name": name, "$patch": "delete"}]}),
            1 => json!({"containers": [{"name": name, "image": "r"}, {"$patch": "replace"}]}),
            2 => json!({"containers": [{"name": name, "env": [env(rng)]}]}),
            3 => json!({"$setElementOrder/containers": [{"name": "c2"}, {"name": "c1"}],
                "containers": [{"name": name, "image": "s"}]}),
            4 => json!({"tolerations": [{"key": "k", "operator": "Exists"}], "nodeSelector": null}),
            _ => json!({"containers": containers(rng)}),
        };
        json!({"template": {"spec": spec}})
    }

    pub(super) fn status(&self, rng: &mut Rng) -> Value {
        match &self.content {
            Content::Custom(spec) if rng.bool() => schema::value(rng, spec),
            _ => json!({"phase": pick(rng, &["One", "Two"])}),
        }
    }
}

fn data(rng: &mut Rng) -> Value {
    let mut data = Map::new();
    for _ in 0..rng.usize(0..3) {
        data.insert(pick(rng, &["k1", "k2", "k3"]).into(), json!(pick(rng, &["djE=", "djI="])));
    }
    match rng.u32(0..12) {
        0 => json!({ "data": data, "unknown": 1 }),
        1 => json!({ "data": {"bad key": "djE="} }),
        2 => json!({ "data": {"k1": 5} }),
        3 => json!({ "data": data, "immutable": false }),
        _ => json!({ "data": data }),
    }
}

fn containers(rng: &mut Rng) -> Value {
    let mut containers = Vec::new();
    for name in ["c1", "c2"] {
        if rng.u32(0..3) == 0 {
            continue;
        }
        let mut container = json!({"name": name, "image": pick(rng, &["i", "j:1", "k:latest"])});
        if rng.bool() {
            container["env"] = json!([env(rng)]);
        }
        if rng.bool() {
            container["ports"] = json!([{"containerPort": rng.u32(80..83)}]);
        }
        if rng.u32(0..4) == 0 {
            let amount = pick(rng, &["100m", "0.1", "1000m", "1Gi", "x"]);
            container["resources"] = json!({"limits": {"cpu": amount}});
        }
        containers.push(container);
    }
    Value::Array(containers)
}

fn env(rng: &mut Rng) -> Value {
    json!({"name": pick(rng, &["E1", "E2"]), "value": pick(rng, &["1", "2"])})
}

fn service_ports(rng: &mut Rng) -> Value {
    let count = rng.usize(1..3);
    let ports = (0..count).map(|index| {
        let mut port = json!({"name": format!("p{index}"), "port": rng.u32(80..84)});
        if rng.u32(0..3) == 0 {
            port["targetPort"] = json!(pick(rng, &["http", "web"]));
        }
        port
    });
    ports.collect()
}

pub(super) fn pick<'a>(rng: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[rng.usize(..choices.len())]
}
