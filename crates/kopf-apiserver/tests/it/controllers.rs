//! Built-in controllers with the real pipeline, as seen by a user of a cluster.

use std::time::Duration;

use kopf_apiserver::{
    DeleteOptions, LocalClient, ManualClock, Patch, PodSelector, Server, Stage, Target,
};
use serde_json::{Value, json};

struct World {
    server: Server,
    client: LocalClient,
    clock: ManualClock,
}

impl World {
    async fn new() -> Self {
        let clock = ManualClock::new("2026-11-15T12:00:00Z".parse().expect("a time"));
        let server = Server::builder().clock(clock.clone()).build();
        let client = server.local();
        let world = Self { server, client, clock };
        let namespace = json!({ "metadata": { "name": "ns" } });
        world.client.create("namespaces", "", namespace).await.expect("a new namespace");
        world.server.settle().await;
        world
    }

    async fn create(&self, table: &str, object: Value) -> Value {
        let created = self.client.create(table, "ns", object).await;
        let created = created.unwrap_or_else(|error| panic!("create in {table}: {error}"));
        self.server.settle().await;
        created.value().clone()
    }

    async fn get(&self, table: &str, name: &str) -> Option<Value> {
        let found = self.client.get(Target::new(table, "ns", name)).await;
        found.ok().map(|stored| stored.value().clone())
    }

    async fn read(&self, table: &str, name: &str) -> Value {
        self.get(table, name).await.unwrap_or_else(|| panic!("{table}/{name} is missing"))
    }

    async fn list(&self, table: &str) -> Vec<Value> {
        let listed = self.client.list(table, "ns").await;
        listed.iter().map(|stored| stored.value().clone()).collect()
    }

    async fn merge(&self, table: &str, name: &str, patch: Value) {
        let target = Target::new(table, "ns", name);
        let patched = self.client.patch(target, Patch::Merge(patch)).await;
        patched.unwrap_or_else(|error| panic!("patch {table}/{name}: {error}"));
        self.server.settle().await;
    }

    async fn delete(&self, table: &str, name: &str, policy: &str) {
        let options = DeleteOptions { propagation_policy: policy.into(), ..Default::default() };
        let deleted = self.client.delete(Target::new(table, "ns", name), options).await;
        deleted.unwrap_or_else(|error| panic!("delete {table}/{name}: {error}"));
        self.server.settle().await;
    }

    async fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.server.settle().await;
    }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "image": image, "ports": [
            { "name": "http", "containerPort": 8080 },
        ] }] },
    })
}

fn deployment(replicas: i64) -> Value {
    json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": template("nginx:1"),
        },
    })
}

fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map_or_else(String::new, |found| {
        format!(
            "{}/{}",
            found["status"].as_str().unwrap_or(""),
            found["reason"].as_str().unwrap_or("")
        )
    })
}

#[tokio::test]
async fn namespaces_get_their_account_and_root_certificate() {
    let world = World::new().await;
    world.read("serviceaccounts", "default").await;
    let bundle = world.read("configmaps", "kube-root-ca.crt").await;
    assert!(bundle["data"]["ca.crt"].as_str().unwrap_or("").starts_with("-----BEGIN CERTIFICATE"));
}

#[tokio::test]
async fn a_deployment_runs_and_rolls() {
    let world = World::new().await;
    world.create("deployments.apps", deployment(3)).await;
    let object = world.read("deployments.apps", "web").await;
    assert_eq!(object["status"]["availableReplicas"], 3, "{object:#}");
    assert_eq!(object["status"]["observedGeneration"], 1);
    assert_eq!(condition(&object, "Progressing"), "True/NewReplicaSetAvailable");
    assert_eq!(world.list("pods").await.len(), 3);
    world
        .merge("deployments.apps", "web", json!({ "spec": { "template": template("nginx:2") } }))
        .await;
    let object = world.read("deployments.apps", "web").await;
    assert_eq!(object["status"]["updatedReplicas"], 3, "{object:#}");
    assert_eq!(object["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    let pods = world.list("pods").await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:2"));
    assert_eq!(world.list("replicasets.apps").await.len(), 2);
}

#[tokio::test]
async fn deleting_a_deployment_takes_everything_with_it() {
    for policy in ["Background", "Foreground"] {
        let world = World::new().await;
        world.create("deployments.apps", deployment(2)).await;
        world.delete("deployments.apps", "web", policy).await;
        for table in ["deployments.apps", "replicasets.apps", "pods"] {
            assert_eq!(world.list(table).await, Vec::<Value>::new(), "{policy} {table}");
        }
    }
}

#[tokio::test]
async fn orphaning_keeps_the_replica_set_running() {
    let world = World::new().await;
    world.create("deployments.apps", deployment(2)).await;
    world.delete("deployments.apps", "web", "Orphan").await;
    let sets = world.list("replicasets.apps").await;
    assert_eq!(sets.len(), 1);
    assert!(sets[0]["metadata"].get("ownerReferences").is_none_or(|owners| *owners == json!([])));
    assert_eq!(world.list("pods").await.len(), 2);
}

#[tokio::test]
async fn a_deleted_namespace_is_emptied_and_removed() {
    let world = World::new().await;
    world.create("deployments.apps", deployment(2)).await;
    let held = json!({ "metadata": { "name": "held", "finalizers": ["test.io/hold"] } });
    world.create("configmaps", held).await;
    let target = Target::new("namespaces", "", "ns");
    world.client.delete(target, DeleteOptions::default()).await.expect("a namespace to delete");
    world.server.settle().await;
    let namespace = world.client.get(target).await.expect("the finalizer holds it");
    assert_eq!(
        condition(namespace.value(), "NamespaceFinalizersRemaining"),
        "True/SomeFinalizersRemain"
    );
    assert_eq!(world.list("pods").await.len(), 0);
    world.merge("configmaps", "held", json!({ "metadata": { "finalizers": null } })).await;
    assert!(world.client.get(target).await.is_err_and(|error| error.is_not_found()));
}

#[tokio::test]
async fn a_deleted_definition_takes_its_instances_with_it() {
    let world = World::new().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.test.io" },
        "spec": {
            "group": "test.io",
            "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            } }],
        },
    });
    let table = "customresourcedefinitions.apiextensions.k8s.io";
    world.client.create(table, "", definition).await.expect("a valid definition");
    world.server.settle().await;
    let thing = json!({ "apiVersion": "test.io/v1", "kind": "Thing",
                        "metadata": { "name": "one", "finalizers": ["test.io/hold"] } });
    world.create("things.test.io", thing).await;
    let target = Target::new(table, "", "things.test.io");
    world.client.delete(target, DeleteOptions::default()).await.expect("a definition to delete");
    world.server.settle().await;
    let object = world.client.get(target).await.expect("the instance holds it");
    assert_eq!(condition(object.value(), "Terminating"), "True/InstanceDeletionInProgress");
    world.merge("things.test.io", "one", json!({ "metadata": { "finalizers": null } })).await;
    assert!(world.client.get(target).await.is_err_and(|error| error.is_not_found()));
}

fn job(spec: Value) -> Value {
    let mut object = json!({
        "metadata": { "name": "work" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "c", "image": "busybox" }],
        } } },
    });
    for (key, value) in spec.as_object().expect("a map") {
        object["spec"][key] = value.clone();
    }
    object
}

#[tokio::test]
async fn a_job_completes() {
    let world = World::new().await;
    world.create("jobs.batch", job(json!({ "completions": 3, "parallelism": 2 }))).await;
    let object = world.read("jobs.batch", "work").await;
    assert_eq!(condition(&object, "Complete"), "True/CompletionsReached", "{object:#}");
    assert_eq!(object["status"]["succeeded"], 3);
    let pods = world.list("pods").await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod["status"]["phase"] == "Succeeded"));
    assert!(
        pods.iter()
            .all(|pod| pod["metadata"].get("finalizers").is_none_or(|list| *list == json!([])))
    );
    world.delete("jobs.batch", "work", "Background").await;
    assert_eq!(world.list("pods").await.len(), 0);
}

#[tokio::test]
async fn a_job_fails_after_its_backoff_limit() {
    let world = World::new().await;
    world.server.stage(PodSelector::any().owner("Job", "work"), Stage::complete(2));
    world.create("jobs.batch", job(json!({ "backoffLimit": 2 }))).await;
    assert_eq!(world.list("pods").await.len(), 1);
    world.advance(11).await;
    assert_eq!(world.list("pods").await.len(), 2);
    world.advance(21).await;
    let object = world.read("jobs.batch", "work").await;
    assert_eq!(condition(&object, "Failed"), "True/BackoffLimitExceeded", "{object:#}");
    assert_eq!(object["status"]["failed"], 3);
}

#[tokio::test]
async fn an_indexed_job_covers_every_index() {
    let world = World::new().await;
    let spec = json!({ "completions": 4, "parallelism": 2, "completionMode": "Indexed" });
    world.create("jobs.batch", job(spec)).await;
    let object = world.read("jobs.batch", "work").await;
    assert_eq!(object["status"]["completedIndexes"], "0-3", "{object:#}");
    assert_eq!(condition(&object, "Complete"), "True/CompletionsReached");
}

fn pod(name: &str, stage: &str) -> Value {
    json!({
        "metadata": { "name": name, "annotations": { "kopf.dev/stage": stage } },
        "spec": { "containers": [{ "name": "c", "image": "nginx" }] },
    })
}

fn state(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]
}

#[tokio::test]
async fn a_crashing_pod_backs_off_and_restarts() {
    let world = World::new().await;
    world.create("pods", pod("sick", "crash,exit-code=2")).await;
    let sick = world.read("pods", "sick").await;
    assert_eq!(state(&sick)["waiting"]["reason"], "CrashLoopBackOff", "{sick:#}");
    let status = &sick["status"]["containerStatuses"][0];
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 2);
    assert_eq!(status["restartCount"], 1);
    world.advance(11).await;
    let sick = world.read("pods", "sick").await;
    assert_eq!(sick["status"]["containerStatuses"][0]["restartCount"], 2);
    world.server.stage(PodSelector::any(), Stage::running());
    let healing = json!({ "metadata": { "annotations": { "kopf.dev/stage": "running" } } });
    world.merge("pods", "sick", healing).await;
    let healed = world.read("pods", "sick").await;
    assert_eq!(condition(&healed, "Ready").split('/').next(), Some("True"), "{healed:#}");
}

#[tokio::test]
async fn pods_show_the_failures_that_tests_request() {
    let world = World::new().await;
    world.create("pods", pod("unpullable", "image-pull-error")).await;
    let unpullable = world.read("pods", "unpullable").await;
    assert_eq!(state(&unpullable)["waiting"]["reason"], "ErrImagePull");
    assert_eq!(unpullable["status"]["phase"], "Pending");
    world.advance(11).await;
    let unpullable = world.read("pods", "unpullable").await;
    assert_eq!(state(&unpullable)["waiting"]["reason"], "ImagePullBackOff");
    world.create("pods", pod("homeless", "unschedulable")).await;
    let homeless = world.read("pods", "homeless").await;
    assert_eq!(condition(&homeless, "PodScheduled"), "False/Unschedulable");
    world.create("pods", pod("late", "running,delay=5s,ready-after=5s")).await;
    assert_eq!(world.read("pods", "late").await["status"]["phase"], "Pending");
    world.advance(5).await;
    let late = world.read("pods", "late").await;
    assert_eq!(late["status"]["phase"], "Running");
    assert_eq!(condition(&late, "Ready"), "False/ContainersNotReady");
    world.advance(5).await;
    let late = world.read("pods", "late").await;
    assert_eq!(condition(&late, "Ready"), "True/");
}

#[tokio::test]
async fn deleted_pods_end_at_once_unless_they_are_stubborn() {
    let world = World::new().await;
    world.create("pods", pod("meek", "running")).await;
    world.create("pods", pod("stubborn", "running,stubborn")).await;
    world.delete("pods", "meek", "").await;
    assert!(world.get("pods", "meek").await.is_none());
    world.delete("pods", "stubborn", "").await;
    world.advance(29).await;
    let stubborn = world.read("pods", "stubborn").await;
    assert_eq!(stubborn["metadata"]["deletionGracePeriodSeconds"], 30);
    world.advance(1).await;
    assert!(world.get("pods", "stubborn").await.is_none());
}

#[tokio::test]
async fn a_stateful_set_starts_in_order_with_its_claims() {
    let world = World::new().await;
    world.server.stage(PodSelector::any().name("db-1"), Stage::never_ready());
    let set = json!({
        "metadata": { "name": "db" },
        "spec": {
            "replicas": 3,
            "serviceName": "db",
            "selector": { "matchLabels": { "app": "web" } },
            "template": template("postgres"),
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            } }],
        },
    });
    world.create("statefulsets.apps", set).await;
    let names = |pods: Vec<Value>| -> Vec<String> {
        pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or("").to_owned()).collect()
    };
    assert_eq!(names(world.list("pods").await), ["db-0", "db-1"]);
    world.server.clear_stages();
    world.server.settle().await;
    assert_eq!(names(world.list("pods").await), ["db-0", "db-1", "db-2"]);
    let object = world.read("statefulsets.apps", "db").await;
    assert_eq!(object["status"]["readyReplicas"], 3, "{object:#}");
    let claim = world.read("persistentvolumeclaims", "data-db-2").await;
    assert_eq!(claim["status"]["phase"], "Bound", "{claim:#}");
    world
        .merge("statefulsets.apps", "db", json!({ "spec": { "template": template("postgres:2") } }))
        .await;
    let object = world.read("statefulsets.apps", "db").await;
    assert_eq!(object["status"]["updatedReplicas"], 3, "{object:#}");
    assert_eq!(object["status"]["currentRevision"], object["status"]["updateRevision"]);
    world.merge("statefulsets.apps", "db", json!({ "spec": { "replicas": 1 } })).await;
    assert_eq!(names(world.list("pods").await), ["db-0"]);
}

#[tokio::test]
async fn a_daemon_set_runs_on_the_only_node() {
    let world = World::new().await;
    let set = json!({
        "metadata": { "name": "agent" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template("agent") },
    });
    world.create("daemonsets.apps", set).await;
    let object = world.read("daemonsets.apps", "agent").await;
    assert_eq!(object["status"]["numberAvailable"], 1, "{object:#}");
    assert_eq!(world.list("pods").await[0]["spec"]["nodeName"], "kopf-node");
    world
        .merge("daemonsets.apps", "agent", json!({ "spec": { "template": template("agent:2") } }))
        .await;
    let object = world.read("daemonsets.apps", "agent").await;
    assert_eq!(object["status"]["updatedNumberScheduled"], 1, "{object:#}");
    assert_eq!(world.list("pods").await[0]["spec"]["containers"][0]["image"], "agent:2");
}

#[tokio::test]
async fn services_publish_their_ready_pods() {
    let world = World::new().await;
    let service = json!({
        "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": "http" }] },
    });
    world.create("services", service).await;
    world.create("deployments.apps", deployment(2)).await;
    let endpoints = world.read("endpoints", "web").await;
    assert_eq!(
        endpoints["subsets"][0]["addresses"].as_array().map(Vec::len),
        Some(2),
        "{endpoints:#}"
    );
    assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], 8080);
    let slices = world.list("endpointslices.discovery.k8s.io").await;
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0]["endpoints"].as_array().map(Vec::len), Some(2));
    world.delete("services", "web", "").await;
    assert!(world.get("endpoints", "web").await.is_none());
    assert_eq!(world.list("endpointslices.discovery.k8s.io").await.len(), 0);
}

#[tokio::test]
async fn claims_are_bound_and_volumes_go_with_them() {
    let world = World::new().await;
    let claim = json!({ "metadata": { "name": "data" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
    } });
    world.create("persistentvolumeclaims", claim).await;
    let claim = world.read("persistentvolumeclaims", "data").await;
    assert_eq!(claim["status"]["phase"], "Bound", "{claim:#}");
    assert_eq!(claim["spec"]["storageClassName"], "standard");
    let volumes = world.client.list("persistentvolumes", "").await;
    assert_eq!(volumes[0].value()["status"]["phase"], "Bound");
    world.delete("persistentvolumeclaims", "data", "").await;
    assert_eq!(world.client.list("persistentvolumes", "").await.len(), 0);
}

#[tokio::test]
async fn forks_have_controllers_of_their_own() {
    let world = World::new().await;
    world.create("deployments.apps", deployment(1)).await;
    let fork = world.server.fork();
    let client = fork.local();
    let target = Target::new("deployments.apps", "ns", "web");
    let patch = Patch::Merge(json!({ "spec": { "replicas": 4 } }));
    client.patch(target, patch).await.expect("a deployment in the fork");
    fork.settle().await;
    assert_eq!(client.list("pods", "ns").await.len(), 4);
    assert_eq!(world.list("pods").await.len(), 1);
}

#[tokio::test]
async fn controllers_of_forks_take_up_where_others_were_done() {
    let world = World::new().await;
    let fork = world.server.fork().fork();
    let client = fork.local();
    client.create("deployments.apps", "ns", deployment(2)).await.expect("a deployment");
    fork.settle().await;
    assert_eq!(client.list("pods", "ns").await.len(), 2);
    let web = Target::new("deployments.apps", "ns", "web");
    client.delete(web, DeleteOptions::default()).await.expect("the deployment can be deleted");
    fork.settle().await;
    assert_eq!(client.list("replicasets.apps", "ns").await.len(), 0, "garbage is collected");
    assert_eq!(client.list("pods", "ns").await.len(), 0, "garbage is collected");
}

#[tokio::test]
async fn controllers_of_forks_go_on_with_what_others_were_waiting_for() {
    let world = World::new().await;
    world.create("pods", pod("late", "running,delay=5s,ready-after=5s")).await;
    let fork = world.server.fork();
    let client = fork.local();
    fork.settle().await;
    world.clock.advance(Duration::from_secs(5));
    fork.settle().await;
    let late = client.get(Target::new("pods", "ns", "late")).await.expect("it was forked, too");
    assert_eq!(late.value()["status"]["phase"], "Running");
}
