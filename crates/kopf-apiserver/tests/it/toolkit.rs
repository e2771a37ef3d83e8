//! The tools for testing operators: faults, the request log, loading and dumping YAML.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_apiserver::{Fault, RequestMatcher, Server, StatusError, Trouble, Verb};
use kube::api::{Api, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

fn maps(server: &Server) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(server.service(), "default"))
}

const WORLD: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: extra}
data: {k: v}
---
# CRDs and namespaces are loaded first, wherever they stand.
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: extra}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
";

#[tokio::test]
async fn a_dumped_world_can_be_loaded_again() {
    let server = Server::builder().controllers(false).build();
    assert_eq!(server.load_yaml(WORLD).await.unwrap(), 3);
    let dump = server.dump_yaml();
    let second = Server::builder().controllers(false).build();
    second.load_yaml(&dump).await.unwrap();
    let strip = |text: &str| -> String {
        // The four initial namespaces keep the identities of their own server.
        text.split("---\n").filter(|document| !document.contains("name: kube-")).collect()
    };
    let lines = |text: &str| -> Vec<String> {
        strip(text).lines().filter(|line| !line.contains("default")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&dump).len(), lines(&second.dump_yaml()).len());
    assert!(
        maps(&second).get("a").await.unwrap().uid() == maps(&server).get("a").await.unwrap().uid()
    );
}

#[tokio::test]
async fn unknown_kinds_are_refused_by_name() {
    let server = Server::builder().controllers(false).build();
    let error = server.load_yaml("kind: Foo\napiVersion: x.io/v1\n").await.unwrap_err();
    assert_eq!(error.to_string(), "document 1: no kind \"Foo\" in version \"x.io/v1\"");
}

#[tokio::test]
async fn faults_apply_and_requests_are_logged() {
    let server = Server::builder().controllers(false).build();
    server.load_yaml("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n").await.unwrap();
    let patches = RequestMatcher::any().verb(Verb::Patch).resource("configmaps");
    let unavailable = StatusError::new(503, "ServiceUnavailable", "try later");
    server.add_fault(Fault::new(patches.clone(), Trouble::Status(unavailable)).times(1));
    let maps = maps(&server);
    let patch = Patch::Merge(json!({"data": {"k": "v"}}));
    assert!(maps.patch("a", &PatchParams::default(), &patch).await.is_err());
    assert!(maps.patch("a", &PatchParams::default(), &patch).await.is_ok());
    let requests = server.requests(&patches);
    let statuses: Vec<u16> = requests.iter().map(|request| request.status).collect();
    assert_eq!(statuses, [503, 200]);
    assert_eq!(requests[1].content_type, "application/merge-patch+json");
    assert_eq!(&requests[1].body[..], br#"{"data":{"k":"v"}}"#);
}

#[tokio::test]
async fn watches_can_be_dropped_and_expired() {
    use futures::TryStreamExt;
    let server = Server::builder().controllers(false).build();
    server.load_yaml(WORLD).await.unwrap();
    let watches = RequestMatcher::any().verb(Verb::Watch);
    server.add_fault(Fault::new(watches.clone(), Trouble::DropWatch(1)).times(1));
    server.add_fault(Fault::new(watches, Trouble::Expired).after(1));
    let maps: Api<ConfigMap> = Api::all(Client::new(server.service(), "default"));
    let watch = async || -> Vec<_> {
        let stream = maps.watch(&WatchParams::default(), "0").await.unwrap();
        stream.try_collect().await.unwrap()
    };
    assert!(matches!(watch().await.as_slice(), [WatchEvent::Added(_)]));
    assert!(matches!(watch().await.as_slice(), [WatchEvent::Error(status)] if status.code == 410));
}

#[tokio::test]
async fn compaction_expires_old_versions() {
    use futures::TryStreamExt;
    let server = Server::builder().controllers(false).build();
    let maps = maps(&server);
    let old = server.resource_version().to_string();
    server.load_yaml("kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n").await.unwrap();
    server.compact();
    let exact = ListParams::default().matching(kube::api::VersionMatch::Exact).at(&old);
    let error = maps.list(&exact).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 410));
    let stream = maps.watch(&WatchParams::default(), &old).await.unwrap();
    let events: Vec<_> = stream.try_collect().await.unwrap();
    assert!(matches!(events.as_slice(), [WatchEvent::Error(status)] if status.code == 410));
}

#[tokio::test]
async fn pods_run_once_controllers_have_settled() {
    let server = Server::new();
    let pod = "kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n";
    server.load_yaml(pod).await.unwrap();
    server.settle().await;
    let pods: Api<k8s_openapi::api::core::v1::Pod> =
        Api::default_namespaced(Client::new(server.service(), "default"));
    let status = pods.get("p").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"), "{status:?}");
}
