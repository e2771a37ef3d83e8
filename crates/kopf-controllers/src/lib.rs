//! The built-in controllers, as reducers: from the objects they see to the writes they request.
//!
//! The header of each controller states its fidelity to upstream; [`world`] defines the common
//! types. [`stages`] defines the behaviour of pods. Independent of the store, tasks and HTTP: the
//! server runs the groups.

mod accounts;
mod aggregation;
pub mod announce;
mod claims;
mod collections;
mod cron_jobs;
mod daemon_sets;
mod definitions;
mod deployments;
mod disruptions;
mod endpoints;
mod flow_schemas;
mod garbage;
mod jobs;
mod namespaces;
mod pod_state;
mod pods;
mod policies;
mod quotas;
mod replica_sets;
mod replication_controllers;
mod revisions;
mod scheduler;
pub mod stages;
mod stateful_sets;
#[cfg(test)]
mod test_world;
pub mod token_secrets;
pub mod world;

use std::sync::Arc;

use kopf_apimachinery::{Stored, fields, label_selectors, schema, status_error, stored};

use stages::StageBook;
use world::Controller;

/// The configuration of the controllers.
pub struct Setup {
    /// Whether pods are scheduled and run.
    pub nodes: bool,
    /// The CA bundle published in every namespace, in PEM.
    pub root_ca: String,
    /// Signs the claims of tokens that are kept in Secrets.
    pub sign: token_secrets::Sign,
    /// The behaviour of pods.
    pub stages: Arc<StageBook>,
}

/// All controllers, in groups: controllers of one group never run at the same time.
pub fn groups(setup: &Setup) -> [Vec<Box<dyn Controller>>; 4] {
    let stages = || Arc::clone(&setup.stages);
    let lifecycle: Vec<Box<dyn Controller>> = vec![
        Box::new(garbage::GarbageCollector::default()),
        Box::new(namespaces::NamespaceLifecycle::default()),
        Box::new(definitions::DefinitionCleanup::default()),
        Box::new(aggregation::RoleAggregation),
        Box::new(quotas::Quotas),
        Box::new(policies::PolicyTypes),
        Box::new(flow_schemas::FlowSchemas),
        Box::new(accounts::NamespaceAccounts { root_ca: setup.root_ca.clone() }),
        Box::new(token_secrets::TokenSecrets {
            root_ca: setup.root_ca.clone(),
            sign: Arc::clone(&setup.sign),
        }),
    ];
    let workloads: Vec<Box<dyn Controller>> = vec![
        Box::new(deployments::Deployments),
        Box::new(replica_sets::ReplicaSets),
        Box::new(stateful_sets::StatefulSets),
        Box::new(daemon_sets::DaemonSets),
        Box::new(jobs::Jobs),
        Box::new(cron_jobs::CronJobs),
        Box::new(replication_controllers::ReplicationControllers),
        Box::new(disruptions::Disruptions),
    ];
    let mut nodes: Vec<Box<dyn Controller>> = Vec::new();
    if setup.nodes {
        nodes.push(Box::new(scheduler::Scheduler { stages: stages() }));
        nodes.push(Box::new(pods::PodLife { stages: stages(), last_address: 0 }));
    }
    let services: Vec<Box<dyn Controller>> =
        vec![Box::new(endpoints::ServiceEndpoints), Box::new(claims::Claims)];
    [lifecycle, workloads, nodes, services]
}
