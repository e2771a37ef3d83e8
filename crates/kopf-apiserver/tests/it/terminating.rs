//! Discovery and requests while a CustomResourceDefinition is being deleted.

use kopf_apiserver::{Server, Target};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::foos;

/// The verbs that a real server lists for a resource whose definition is terminating.
const READ_AND_DELETE: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

struct World {
    server: Server,
    client: Client,
}

impl World {
    /// A server with one `Foo` that has a finalizer.
    async fn new() -> Self {
        let server = Server::builder().controllers(false).build();
        let client = Client::new(server.service(), "default");
        let definition = foos::definition(json!({
            "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }},
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
            },
        }));
        let held = json!({
            "apiVersion": "t.io/v1", "kind": "Foo",
            "metadata": {"name": "a", "namespace": "default", "finalizers": ["t.io/held"]},
        });
        for object in [definition, held] {
            server.load_yaml(&object.to_string()).await.unwrap();
        }
        Self { server, client }
    }

    async fn get(&self, path: &str, accept: &str) -> Value {
        let request = http::Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
        self.client.request(request).await.unwrap()
    }

    /// The resources and subresources of `t.io/v1`, by both kinds of discovery, with their verbs.
    async fn verbs(&self) -> [Vec<(String, Value)>; 2] {
        let list = self.get("/apis/t.io/v1", "application/json").await;
        let entries = list["resources"].as_array().unwrap().iter();
        let listed =
            entries.map(|it| (it["name"].as_str().unwrap().to_owned(), it["verbs"].clone()));
        let listed: Vec<_> = listed.collect();
        let groups = self.get("/apis", AGGREGATED).await;
        let mut groups = groups["items"].as_array().unwrap().iter();
        let group = groups.find(|group| group["metadata"]["name"] == "t.io").unwrap();
        let foos = &group["versions"][0]["resources"][0];
        let mut aggregated = vec![("foos".to_owned(), foos["verbs"].clone())];
        for sub in foos["subresources"].as_array().unwrap() {
            let name = format!("foos/{}", sub["subresource"].as_str().unwrap());
            aggregated.push((name, sub["verbs"].clone()));
        }
        [listed, aggregated]
    }

    async fn delete_definition(&self) {
        let definitions = ApiResource {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            api_version: "apiextensions.k8s.io/v1".into(),
            kind: "CustomResourceDefinition".into(),
            plural: "customresourcedefinitions".into(),
        };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &definitions);
        api.delete("foos.t.io", &DeleteParams::default()).await.unwrap();
    }

    fn foos(&self) -> Api<DynamicObject> {
        let foos = ApiResource {
            group: "t.io".into(),
            version: "v1".into(),
            api_version: "t.io/v1".into(),
            kind: "Foo".into(),
            plural: "foos".into(),
        };
        Api::default_namespaced_with(self.client.clone(), &foos)
    }
}

#[tokio::test]
async fn the_discovery_of_a_terminating_definition_lists_no_writes() {
    let world = World::new().await;
    let all =
        json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]);
    for verbs in world.verbs().await {
        assert_eq!(verbs[0], ("foos".to_owned(), all.clone()));
    }
    world.delete_definition().await;
    let of_subresources = json!(["get", "patch", "update"]);
    for verbs in world.verbs().await {
        let expected = [
            ("foos".to_owned(), json!(READ_AND_DELETE)),
            ("foos/status".to_owned(), of_subresources.clone()),
            ("foos/scale".to_owned(), of_subresources.clone()),
        ];
        assert_eq!(verbs, expected);
    }
}

#[tokio::test]
async fn objects_of_a_terminating_definition_can_be_patched_although_discovery_says_no() {
    let world = World::new().await;
    let before = world.get("/apis/t.io/v1", "application/json").await;
    world.delete_definition().await;
    let after = world.get("/apis/t.io/v1", "application/json").await;
    let hash = |list: &Value| list["resources"][0]["storageVersionHash"].clone();
    assert_eq!(hash(&after), hash(&before), "the objects are stored as before");
    let patch = Patch::Merge(json!({"spec": {"n": 2}}));
    let patched = world.foos().patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data["spec"]["n"], 2);
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.foos().patch("a", &PatchParams::default(), &release).await.unwrap();
    let definition = Target::new("customresourcedefinitions.apiextensions.k8s.io", "", "foos.t.io");
    assert!(world.server.local().get(definition).await.unwrap_err().is_not_found());
}
