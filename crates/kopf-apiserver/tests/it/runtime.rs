//! The runtime of `kube`: controllers, finalizers and leader election, in-process and over HTTP.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_apiserver::Server;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Client, Config, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;

const FINALIZER: &str = "tests.kopf.dev/held";
const PATIENCE: Duration = Duration::from_secs(30);

/// The context of an operator.
struct World {
    client: Client,
    /// Reports what the reconciler did: verb and name.
    done: mpsc::UnboundedSender<String>,
}

fn in_process(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

async fn over_tls(server: &Server) -> (Client, kopf_apiserver::Listening) {
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    (Client::try_from(config).unwrap(), listening)
}

fn named<K: serde::de::DeserializeOwned>(name: &str) -> K {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

type Failure = kube::runtime::finalizer::Error<kube::Error>;

/// Gives every map a child, with a finalizer around it.
async fn reconcile(map: Arc<ConfigMap>, world: Arc<World>) -> Result<Action, Failure> {
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    let children = maps.clone();
    finalizer(&maps, FINALIZER, map, |event| async move {
        let (verb, map) = match event {
            Event::Apply(map) => {
                let patch = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": format!("{}-child", map.name_any())},
                    "data": {"parent": map.name_any()},
                });
                let name = format!("{}-child", map.name_any());
                let params = PatchParams::apply("runtime-test");
                children.patch(&name, &params, &Patch::Apply(patch)).await?;
                ("applied", map)
            }
            Event::Cleanup(map) => {
                let name = format!("{}-child", map.name_any());
                children.delete(&name, &DeleteParams::default()).await?;
                ("cleaned", map)
            }
        };
        // The test may already have ended.
        let _ = world.done.send(format!("{verb} {}", map.name_any()));
        Ok(Action::await_change())
    })
    .await
}

async fn wait_for(reports: &mut mpsc::UnboundedReceiver<String>, wanted: &str) {
    let seen = async { while reports.recv().await.expect("the controller runs") != wanted {} };
    tokio::time::timeout(PATIENCE, seen).await.unwrap_or_else(|_| panic!("never {wanted}"));
}

/// The whole life of an object under a controller with a finalizer.
async fn controller_and_finalizer_work(client: Client, config: watcher::Config) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let (done, mut reports) = mpsc::unbounded_channel();
    let world = Arc::new(World { client, done });
    let parents = config.labels("role=parent");
    let controller = Controller::new(maps.clone(), parents)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), world)
        .for_each(|_| futures::future::ready(()));
    let running = tokio::spawn(controller);
    let mut parent: ConfigMap = named("a");
    parent.metadata.labels = Some([("role".to_owned(), "parent".to_owned())].into());
    maps.create(&PostParams::default(), &parent).await.unwrap();
    wait_for(&mut reports, "applied a").await;
    assert_eq!(maps.get("a").await.unwrap().finalizers(), [FINALIZER]);
    let child = maps.get("a-child").await.unwrap();
    assert_eq!(child.data.as_ref().unwrap()["parent"], "a");
    assert_eq!(child.managed_fields()[0].manager.as_deref(), Some("runtime-test"));
    let uid = maps.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap().uid();
    wait_for(&mut reports, "cleaned a").await;
    let uid = uid.unwrap();
    let gone = await_condition(maps.clone(), "a", conditions::is_deleted(&uid));
    tokio::time::timeout(PATIENCE, gone).await.unwrap().unwrap();
    assert!(maps.get_opt("a-child").await.unwrap().is_none());
    running.abort();
}

#[tokio::test]
async fn controller_and_finalizer_work_in_process() {
    let server = Server::builder().controllers(false).build();
    controller_and_finalizer_work(in_process(&server), watcher::Config::default()).await;
}

#[tokio::test]
async fn controller_and_finalizer_work_with_streaming_lists() {
    let server = Server::builder().controllers(false).build();
    let config = watcher::Config::default().streaming_lists();
    controller_and_finalizer_work(in_process(&server), config).await;
}

#[tokio::test]
async fn controller_and_finalizer_work_over_tls() {
    let server = Server::builder().controllers(false).build();
    let (client, listening) = over_tls(&server).await;
    controller_and_finalizer_work(client, watcher::Config::default()).await;
    listening.shutdown().await;
}

/// A candidate for leader election, as in client-go: read, decide, replace with the version read.
struct Contender {
    leases: Api<Lease>,
    name: &'static str,
}

impl Contender {
    /// Takes or renews the lease; false if another candidate has it or was faster.
    async fn try_to_lead(&self, holder_gone: bool) -> bool {
        let current = match self.leases.get_opt("leader").await.unwrap() {
            None => {
                let mut lease: Lease = named("leader");
                lease.spec = Some(serde_json::from_value(self.claim(0)).unwrap());
                return self.leases.create(&PostParams::default(), &lease).await.is_ok();
            }
            Some(current) => current,
        };
        let spec = current.spec.clone().unwrap_or_default();
        let is_own = spec.holder_identity.as_deref() == Some(self.name);
        if !is_own && !holder_gone {
            return false;
        }
        let transitions = spec.lease_transitions.unwrap_or(0) + i32::from(!is_own);
        let mut wanted = current;
        wanted.spec = Some(serde_json::from_value(self.claim(transitions)).unwrap());
        // Yields between read and write, so that candidates conflict.
        tokio::task::yield_now().await;
        match self.leases.replace("leader", &PostParams::default(), &wanted).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.is_conflict() => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn claim(&self, transitions: i32) -> serde_json::Value {
        json!({
            "holderIdentity": self.name, "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-15T12:00:00.000000Z",
            "renewTime": "2026-11-15T12:00:00.000000Z", "leaseTransitions": transitions,
        })
    }
}

#[tokio::test]
async fn exactly_one_contender_leads_at_a_time() {
    let server = Server::builder().controllers(false).build();
    let (tls, listening) = over_tls(&server).await;
    let contender =
        |client: &Client, name| Contender { leases: Api::default_namespaced(client.clone()), name };
    let (first, second) = (contender(&in_process(&server), "first"), contender(&tls, "second"));
    for round in 0..20 {
        // Nobody renews the lease any more: both may take it, one succeeds.
        let (one, two) = tokio::join!(first.try_to_lead(true), second.try_to_lead(true));
        assert!(one || two, "round {round}: nobody leads");
        let holder = first.leases.get("leader").await.unwrap().spec.unwrap().holder_identity;
        let holder = holder.unwrap();
        let (leader, other) = if holder == "first" { (&first, &second) } else { (&second, &first) };
        assert!(leader.try_to_lead(false).await, "round {round}: the leader cannot renew");
        assert!(!other.try_to_lead(false).await, "round {round}: two leaders");
    }
    listening.shutdown().await;
}

#[tokio::test]
async fn a_lease_cannot_be_taken_with_a_version_that_is_gone() {
    let server = Server::builder().controllers(false).build();
    let leases: Api<Lease> = Api::default_namespaced(in_process(&server));
    let lease = leases.create(&PostParams::default(), &named("leader")).await.unwrap();
    let claim = |name: &str| {
        json!({"metadata": {"resourceVersion": lease.resource_version()},
               "spec": {"holderIdentity": name}})
    };
    let params = PatchParams::default();
    leases.patch("leader", &params, &Patch::Merge(claim("first"))).await.unwrap();
    let late = leases.patch("leader", &params, &Patch::Merge(claim("second"))).await;
    assert!(matches!(late, Err(kube::Error::Api(status)) if status.is_conflict()));
}
