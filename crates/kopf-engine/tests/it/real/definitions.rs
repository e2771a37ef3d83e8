//! A CustomResourceDefinition that is deleted on a real cluster while we hold its objects.

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::registry::Registry;
use kopf_core::settings::Settings;
use kopf_engine::{Engine, Running};
use kopf_model::Selector;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use super::until;
use crate::world::{Calls, handler, last_handled, log_if_wanted, temporary};

const DEFINITION: &str = "goers.engine-it-going.dev";

fn goers() -> ApiResource {
    ApiResource {
        group: "engine-it-going.dev".into(),
        version: "v1".into(),
        api_version: "engine-it-going.dev/v1".into(),
        kind: "Goer".into(),
        plural: "goers".into(),
    }
}

/// The deletion takes a while, so that discovery happens before it is over.
async fn start(calls: &Calls) -> Running {
    let noted = calls.clone();
    let delete = handler("delete_fn", HandlerKind::Delete { optional: false }, move |call| {
        noted.note(format!("delete:{}", call.attempt.retry));
        match call.attempt.retry {
            0 => Err(temporary("not yet", 5.0)),
            _ => Ok(Output::Nothing),
        }
    });
    let noted = calls.clone();
    let create = handler("create_fn", HandlerKind::Create, move |_| {
        noted.note("create");
        Ok(Output::Nothing)
    });
    let selector = Selector::parse(&["engine-it-going.dev", "v1", "goers"]).ok();
    let handlers = [create, delete].map(|it| Handler { selector: selector.clone(), ..it });
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    let builder = Engine::builder(Registry::from_iter(handlers)).settings(settings);
    let engine = builder.login(kopf_client::default_login()).build().start();
    engine.settled().await;
    engine
}

struct Cluster {
    crds: Api<DynamicObject>,
    goers: Api<DynamicObject>,
}

impl Cluster {
    async fn new() -> Self {
        let client = kube::Client::try_default().await.expect("a cluster");
        let crds = ApiResource {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            api_version: "apiextensions.k8s.io/v1".into(),
            kind: "CustomResourceDefinition".into(),
            plural: "customresourcedefinitions".into(),
        };
        Self {
            crds: Api::all_with(client.clone(), &crds),
            goers: Api::namespaced_with(client, "default", &goers()),
        }
    }

    async fn delete_definition(&self) {
        let _ = self.crds.delete(DEFINITION, &DeleteParams::default()).await;
    }

    async fn is_gone(&self) {
        until("the end of the definition", async || {
            self.crds.get_opt(DEFINITION).await.expect("an answer").is_none().then_some(())
        })
        .await;
    }

    /// Creates the definition and one object, which is handled.
    async fn populate(&self) {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": DEFINITION},
            "spec": {
                "group": "engine-it-going.dev", "scope": "Namespaced",
                "names": {"kind": "Goer", "plural": "goers", "singular": "goer"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        });
        let definition = serde_json::from_value(definition).expect("a CRD");
        self.crds.create(&PostParams::default(), &definition).await.expect("it is created");
        let object = json!({
            "apiVersion": "engine-it-going.dev/v1", "kind": "Goer",
            "metadata": {"name": "a"}, "spec": {"x": 1},
        });
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let create = async || self.goers.create(&PostParams::default(), &object).await.ok();
        until("the creation", create).await;
        until("the handling", async || {
            let found = self.goers.get_opt("a").await.expect("an answer")?;
            let found: Value = serde_json::to_value(found).expect("JSON");
            last_handled(&found).map(drop)
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn a_definition_on_a_real_cluster_is_deleted_with_its_objects() {
    log_if_wanted();
    let cluster = Cluster::new().await;
    cluster.delete_definition().await;
    cluster.is_gone().await;
    let calls = Calls::default();
    // With a running operator, twice.
    let engine = start(&calls).await;
    for _ in 0..2 {
        cluster.populate().await;
        cluster.delete_definition().await;
        cluster.is_gone().await;
    }
    // And with one that is started meanwhile.
    cluster.populate().await;
    engine.stop().await.expect("a clean end");
    cluster.delete_definition().await;
    let engine = start(&calls).await;
    cluster.is_gone().await;
    engine.stop().await.expect("a clean end");
    assert_eq!(calls.all(), ["create", "delete:0", "delete:1"].repeat(3));
}
