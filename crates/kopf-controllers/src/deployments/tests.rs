//! Rollouts in a simulated cluster with ReplicaSets, a scheduler and pods with stages.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::collections::NODES;
use crate::garbage::GarbageCollector;
use crate::pods::PodLife;
use crate::replica_sets::ReplicaSets;
use crate::scheduler::Scheduler;
use crate::stages::{PodSelector, Stage, StageBook};
use crate::test_world::Simulation;

struct Rollout {
    simulation: Simulation,
    stages: Arc<StageBook>,
}

impl Rollout {
    fn new() -> Self {
        let stages = Arc::new(StageBook::default());
        let mut simulation = Simulation::new(vec![
            Box::new(GarbageCollector::default()),
            Box::new(Deployments),
            Box::new(ReplicaSets),
            Box::new(Scheduler { stages: Arc::clone(&stages) }),
            Box::new(PodLife { stages: Arc::clone(&stages), last_address: 0 }),
        ]);
        simulation.world.serve(DEPLOYMENTS, "Deployment", true);
        simulation.world.serve(REPLICA_SETS, "ReplicaSet", true);
        simulation.world.serve(PODS, "Pod", true);
        simulation.create(&NODES, json!({ "metadata": { "name": "kopf-node" } }));
        Self { simulation, stages }
    }

    fn create(&mut self, spec: Value) {
        let mut object = json!({
            "metadata": { "name": "web", "namespace": "ns" },
            "spec": {
                "replicas": 3,
                "selector": { "matchLabels": { "app": "web" } },
                "template": template("v1"),
                "progressDeadlineSeconds": 600,
            },
        });
        kopf_apimachinery::patch::merge::apply(&mut object["spec"], &spec);
        self.simulation.create(&DEPLOYMENTS, object);
        self.simulation.settle();
    }

    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut object = self.deployment();
        change(&mut object);
        self.simulation.update(&DEPLOYMENTS, object);
        self.simulation.settle();
    }

    fn deployment(&self) -> Value {
        self.simulation.read(&DEPLOYMENTS, "ns", "web")
    }

    fn sets(&self) -> Vec<Seen> {
        self.simulation.world.list(&REPLICA_SETS, Some("ns"))
    }

    fn sizes(&self) -> Vec<(String, i64)> {
        let mut sizes: Vec<(String, i64)> = self
            .sets()
            .iter()
            .map(|set| {
                let image = text(&set["spec"]["template"]["spec"]["containers"][0], &["image"]);
                (image.to_owned(), number(set, &["spec", "replicas"]).unwrap_or(-1))
            })
            .collect();
        sizes.sort();
        sizes
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let deployment = self.deployment();
        let found = fields::condition(&deployment, kind).cloned().unwrap_or_default();
        (text(&found, &["status"]).to_owned(), text(&found, &["reason"]).to_owned())
    }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "image": image }], "restartPolicy": "Always" },
    })
}

fn said(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[test]
fn a_new_deployment_becomes_available() {
    let mut rollout = Rollout::new();
    rollout.create(json!({}));
    let status = &rollout.deployment()["status"];
    assert_eq!(status["availableReplicas"], 3);
    assert_eq!(status["updatedReplicas"], 3);
    assert!(status.get("unavailableReplicas").is_none());
    assert_eq!(rollout.condition("Available"), said("True", "MinimumReplicasAvailable"));
    assert_eq!(rollout.condition("Progressing"), said("True", "NewReplicaSetAvailable"));
    assert_eq!(annotation(&rollout.deployment(), REVISION), Some("1"));
}

#[test]
fn a_changed_template_rolls_out_and_counts_revisions() {
    let mut rollout = Rollout::new();
    rollout.create(json!({}));
    rollout.change(|object| object["spec"]["template"] = template("v2"));
    assert_eq!(rollout.sizes(), [("v1".to_owned(), 0), ("v2".to_owned(), 3)]);
    assert_eq!(annotation(&rollout.deployment(), REVISION), Some("2"));
    rollout.change(|object| object["spec"]["template"] = template("v1"));
    assert_eq!(rollout.sizes(), [("v1".to_owned(), 3), ("v2".to_owned(), 0)]);
    assert_eq!(annotation(&rollout.deployment(), REVISION), Some("3"));
    let sets = rollout.sets();
    let history: Vec<_> = sets.iter().filter_map(|set| annotation(set, REVISION_HISTORY)).collect();
    assert_eq!(history, ["1"]);
}

#[test]
fn a_rollout_that_never_gets_ready_keeps_the_old_pods_and_times_out() {
    let mut rollout = Rollout::new();
    rollout.create(json!({ "replicas": 4 }));
    rollout.stages.add(PodSelector::any().label("bad", "yes"), Stage::never_ready());
    rollout.change(|object| {
        object["spec"]["template"] = template("v2");
        object["spec"]["template"]["metadata"]["labels"]["bad"] = json!("yes");
    });
    // maxUnavailable 25 % of 4 is 1, maxSurge 25 % is 1.
    assert_eq!(rollout.sizes(), [("v1".to_owned(), 3), ("v2".to_owned(), 2)]);
    assert_eq!(rollout.deployment()["status"]["availableReplicas"], 3);
    assert_eq!(rollout.condition("Available"), said("True", "MinimumReplicasAvailable"));
    assert_eq!(rollout.condition("Progressing"), said("True", "ReplicaSetUpdated"));
    rollout.simulation.advance(601);
    assert_eq!(rollout.condition("Progressing"), said("False", "ProgressDeadlineExceeded"));
}

#[test]
fn recreate_removes_old_pods_before_it_starts_new_ones() {
    let mut rollout = Rollout::new();
    rollout.create(json!({ "strategy": { "type": "Recreate" } }));
    assert_eq!(rollout.deployment()["status"]["availableReplicas"], 3);
    rollout.change(|object| object["spec"]["template"] = template("v2"));
    assert_eq!(rollout.sizes(), [("v1".to_owned(), 0), ("v2".to_owned(), 3)]);
    assert_eq!(rollout.simulation.world.list(&PODS, Some("ns")).len(), 3);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut rollout = Rollout::new();
    rollout.create(json!({}));
    rollout.change(|object| {
        object["spec"]["paused"] = json!(true);
        object["spec"]["template"] = template("v2");
        object["spec"]["replicas"] = json!(5);
    });
    assert_eq!(rollout.sizes(), [("v1".to_owned(), 5)]);
    assert_eq!(rollout.condition("Progressing"), said("Unknown", "DeploymentPaused"));
    rollout.change(|object| object["spec"]["paused"] = json!(false));
    assert_eq!(rollout.sizes(), [("v1".to_owned(), 0), ("v2".to_owned(), 5)]);
    assert_eq!(rollout.condition("Progressing"), said("True", "NewReplicaSetAvailable"));
}

#[test]
fn scaling_up_and_down_follows_the_spec() {
    let mut rollout = Rollout::new();
    rollout.create(json!({}));
    for replicas in [7, 2, 0, 1] {
        rollout.change(|object| object["spec"]["replicas"] = json!(replicas));
        assert_eq!(rollout.sizes(), [("v1".to_owned(), replicas)]);
        let pods = rollout.simulation.world.list(&PODS, Some("ns"));
        assert_eq!(pods.len() as i64, replicas);
    }
}

#[test]
fn old_sets_beyond_the_history_limit_are_deleted() {
    let mut rollout = Rollout::new();
    rollout.create(json!({ "revisionHistoryLimit": 1 }));
    for image in ["v2", "v3", "v4"] {
        rollout.change(|object| object["spec"]["template"] = template(image));
    }
    assert_eq!(rollout.sizes(), [("v3".to_owned(), 0), ("v4".to_owned(), 3)]);
}

#[test]
fn orphaned_pods_are_adopted_and_other_pods_are_ignored() {
    let mut rollout = Rollout::new();
    rollout.create(json!({ "replicas": 1 }));
    let set = rollout.sets().remove(0);
    let mut labels = set["spec"]["selector"]["matchLabels"].clone();
    labels["extra"] = json!("yes");
    rollout.simulation.create(
        &PODS,
        json!({ "metadata": { "name": "stray", "namespace": "ns", "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "v1" }] } }),
    );
    rollout.simulation.create(
        &PODS,
        json!({ "metadata": { "name": "stranger", "namespace": "ns", "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "v1" }] } }),
    );
    rollout.simulation.settle();
    // One of the two pods of the set is surplus; the other pod has no template hash.
    assert_eq!(rollout.simulation.world.list(&PODS, Some("ns")).len(), 2);
    assert!(!rollout.simulation.read(&PODS, "ns", "stranger").is_null());
}

#[test]
fn template_hashes_do_not_depend_on_field_order() {
    let left = json!({ "metadata": { "labels": { "a": "b", "c": "d" } },
                       "spec": { "hostname": "h", "subdomain": "s" } });
    let right = json!({ "spec": { "subdomain": "s", "hostname": "h" },
                        "metadata": { "labels": { "c": "d", "a": "b" } } });
    assert_eq!(template_hash(&left, 0), template_hash(&right, 0));
    assert_ne!(template_hash(&left, 0), template_hash(&left, 1));
}

/// The names that a real cluster assigned to a ReplicaSet and a ControllerRevision.
#[test]
fn hashes_are_those_of_a_real_cluster() {
    let template = json!({
        "metadata": { "creationTimestamp": null, "labels": { "a": "b" } },
        "spec": {
            "containers": [{
                "name": "c", "image": "i", "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File", "imagePullPolicy": "Always",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst", "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    });
    assert_eq!(template_hash(&template, 0), "5d8496b74c");
    let mut replaced = template;
    replaced["$patch"] = json!("replace");
    let data = json!({ "spec": { "template": replaced } });
    assert_eq!(super::revision_hash(&data, 0), "57d86958df");
}
