//! Reads and writes Leases, each request with a timeout.
//!
//! Every write specifies the version that it replaces, so that the server rejects it if the Lease
//! has changed meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{
    Batch, ChangeKind, Cluster, Collection, Failure, Observation, PatchContent, RequestError,
    Target, Urgency, WatchLimits, Watcher,
};
use kopf_core::election::{Precondition, Write};
use kopf_model::lease::{self, LeaseRecord};
use kopf_model::{Object, Resource};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

/// The Leases of one namespace.
#[derive(Clone)]
pub(crate) struct Leases {
    cluster: Cluster,
    resource: Arc<Resource>,
    namespace: Arc<str>,
    patience: Duration,
    /// Whether changes of the leadership are posted as events.
    is_announced: bool,
}

/// The result of a write.
pub(crate) enum Written {
    /// It now has this version.
    Done(String),
    /// Another writer was faster.
    Conflict,
    /// The result is unknown.
    Unknown(RequestError),
}

/// A Lease as found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) record: LeaseRecord,
    pub(crate) version: String,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// Changes from a watch of Leases.
#[derive(Debug)]
pub(crate) enum LeaseChange {
    Found(Found),
    Gone(String),
}

/// Receives changes until it is dropped.
pub(crate) struct LeaseWatch {
    observations: mpsc::Receiver<((), Batch)>,
    _task: AbortOnDropHandle<()>,
}

impl Leases {
    pub(crate) fn new(cluster: Cluster, namespace: &str, patience: Duration) -> Self {
        let text = |it: &str| it.to_owned();
        let resource = Resource {
            group: text(lease::GROUP),
            version: text(lease::VERSION),
            plural: text("leases"),
            kind: text("Lease"),
            singular: text("lease"),
            namespaced: true,
            ..Resource::cluster_wide(lease::GROUP, "leases", "Lease")
        };
        let (resource, namespace) = (Arc::new(resource), namespace.into());
        Self { cluster, resource, namespace, patience, is_announced: false }
    }

    /// Sets whether changes of the leadership are posted as events.
    pub(crate) fn announced(mut self, is_announced: bool) -> Self {
        self.is_announced = is_announced;
        self
    }

    /// Posts an event about a Lease, as client-go does. The task may be awaited, or left to itself.
    /// Operators need not have the right to do this.
    pub(crate) fn announce(
        &self,
        name: &str,
        identity: &str,
        what: &str,
    ) -> Option<JoinHandle<()>> {
        if !self.is_announced {
            return None;
        }
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let namespace = Arc::clone(&self.namespace);
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": format!("{name}-"), "namespace": *namespace},
            "involvedObject": {
                "apiVersion": format!("{}/{}", lease::GROUP, lease::VERSION),
                "kind": "Lease", "name": name, "namespace": *namespace,
            },
            "type": "Normal",
            "reason": "LeaderElection",
            "message": format!("{identity} {what}"),
            "source": {"component": identity},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let (cluster, patience) = (self.cluster.clone(), self.patience);
        let task = tokio::spawn(async move {
            let resource = Resource {
                version: "v1".to_owned(),
                namespaced: true,
                ..Resource::cluster_wide("", "events", "Event")
            };
            let body = body.to_string().into();
            let posting = cluster.create_patiently(&resource, Some(&namespace), body, &[]);
            if let Ok(Err(error)) = tokio::time::timeout(patience, posting).await {
                tracing::debug!(%error, "could not post an event about the leadership");
            }
        });
        Some(task)
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn target<'a>(&'a self, name: &'a str) -> Target<'a> {
        let namespace = Some(&*self.namespace);
        Target { resource: &self.resource, namespace, name, subresource: None }
    }

    /// Reads a Lease; `None` if it does not exist.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Found>, RequestError> {
        let reading = self.cluster.get(self.target(name));
        match self.limited(reading).await {
            Ok(object) => Ok(Some(Found::of(&object))),
            Err(error) if error.failure == Failure::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a Lease; `metadata` is added to its own.
    pub(crate) async fn write(&self, name: &str, write: &Write, metadata: Value) -> Written {
        let written = match &write.precondition {
            Precondition::Absent => self.create(name, &write.record, metadata).await,
            Precondition::Version(version) => {
                self.replace(name, &write.record, metadata, version).await
            }
        };
        match written {
            Ok(object) => Written::Done(object.resource_version().to_owned()),
            // A deleted Lease has changed too.
            Err(error) if matches!(error.failure, Failure::Conflict | Failure::NotFound) => {
                Written::Conflict
            }
            Err(error) => Written::Unknown(error),
        }
    }

    async fn create(
        &self,
        name: &str,
        record: &LeaseRecord,
        mut metadata: Value,
    ) -> Result<Object, RequestError> {
        metadata["name"] = json!(name);
        metadata["namespace"] = json!(&*self.namespace);
        let api_version = format!("{}/{}", lease::GROUP, lease::VERSION);
        let body = json!({
            "apiVersion": api_version, "kind": "Lease", "metadata": metadata, "spec": record.spec(),
        });
        let namespace = Some(&*self.namespace);
        let body = body.to_string().into();
        let creating = self.cluster.create_patiently(&self.resource, namespace, body, &[]);
        self.limited(creating).await
    }

    async fn replace(
        &self,
        name: &str,
        record: &LeaseRecord,
        mut metadata: Value,
        version: &str,
    ) -> Result<Object, RequestError> {
        metadata["resourceVersion"] = json!(version);
        let patch = json!({"metadata": metadata, "spec": record.spec()});
        let content = PatchContent::Merge(patch.to_string().into());
        self.limited(self.cluster.patch(self.target(name), content, Urgency::Urgent)).await
    }

    /// Deletes a Lease without a holder.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), RequestError> {
        let deleting = async {
            let object = self.cluster.get(self.target(name)).await?;
            if !LeaseRecord::read(object.value()).holder.is_empty() {
                return Ok(());
            }
            self.cluster.delete(self.target(name), object.uid()).await
        };
        match self.limited(deleting).await {
            Err(error) if error.failure == Failure::NotFound => Ok(()),
            other => other,
        }
    }

    async fn limited<T>(
        &self,
        request: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        match tokio::time::timeout(self.patience, request).await {
            Ok(answer) => answer,
            Err(_) => Err(RequestError::overdue(self.patience)),
        }
    }

    /// Watches the changes of some Leases.
    pub(crate) fn watch_changes(
        &self,
        labels: Option<String>,
        fields: Option<String>,
    ) -> LeaseWatch {
        let collection = Collection {
            resource: Arc::clone(&self.resource),
            namespace: Some(Arc::clone(&self.namespace)),
            label_selector: labels,
            field_selector: fields,
            shard_selector: None,
            part: None,
            limits: WatchLimits::default(),
            managed_fields: false,
            backlog: None,
        };
        let (sink, observations) = mpsc::channel(4);
        let watcher = Watcher::new(self.cluster.clone(), collection, (), sink);
        let task = AbortOnDropHandle::new(tokio::spawn(watcher.run()));
        LeaseWatch { observations, _task: task }
    }
}

impl Found {
    fn of(object: &Object) -> Self {
        let annotations = object.value()["metadata"]["annotations"].as_object();
        let annotations = annotations.into_iter().flatten();
        let text = |(key, value): (&String, &Value)| {
            value.as_str().map(|value| (key.clone(), value.to_owned()))
        };
        Self {
            name: object.name().to_owned(),
            record: LeaseRecord::read(object.value()),
            version: object.resource_version().to_owned(),
            annotations: annotations.filter_map(text).collect(),
        }
    }
}

impl LeaseWatch {
    /// The next changes; waits until there are any.
    pub(crate) async fn next(&mut self) -> Vec<LeaseChange> {
        loop {
            let Some(((), batch)) = self.observations.recv().await else {
                return std::future::pending().await;
            };
            let changes: Vec<LeaseChange> = batch.into_iter().filter_map(change_of).collect();
            if !changes.is_empty() {
                return changes;
            }
        }
    }
}

fn change_of(observation: Observation) -> Option<LeaseChange> {
    match observation {
        Observation::Changed(ChangeKind::Deleted, object) => {
            Some(LeaseChange::Gone(object.name().to_owned()))
        }
        Observation::Listed(object) | Observation::Changed(_, object) => {
            Some(LeaseChange::Found(Found::of(&object)))
        }
        _ => None,
    }
}
