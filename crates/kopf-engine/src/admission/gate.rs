//! Reviews through a server of the front end, which passes the requests on and provides its address
//! for the cluster.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use kopf_core::handler::{Family, Handler};
use kopf_core::invoke::panic_text;
use kopf_core::{convert, endpoint};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::review::ReviewError;
use super::{Admission, Serving, configuration, conversion};
use crate::cluster_view::ClusterSnapshot;

/// The pause before a failed write of a configuration is retried.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a front end submits the reviews that its own server receives.
///
/// Passed to the engine builder; works once the cluster is connected.
#[derive(Clone, Default)]
pub struct ReviewGate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Set by the engine when the cluster is connected; dead once the engine has ended.
    admission: OnceLock<Weak<Admission>>,
    /// The address of the server for the cluster; written by the front end.
    client_config: watch::Sender<Option<Value>>,
    /// The name of the configurations to keep up to date; written by the front end.
    managed: Mutex<Option<String>>,
    /// Whether the configurations are up to date; written by the engine.
    is_settled: watch::Sender<bool>,
}

impl ReviewGate {
    /// Responds to a review, for one handler by its id or for all.
    ///
    /// # Errors
    /// Fails when the request is incomplete, is about a resource that no handler is for, or when a
    /// condition or a transformation fails.
    pub async fn review(
        &self,
        body: &Value,
        webhook: Option<&str>,
        headers: Vec<(String, String)>,
    ) -> Result<Value, ReviewError> {
        self.admission()?.review(body, webhook, headers).await
    }

    /// Responds to an admission or conversion review that was sent to a path of the server.
    ///
    /// # Errors
    /// Fails when the request is incomplete, when nothing answers at that path, or when a condition
    /// or a transformation fails.
    pub async fn answer(&self, path: &str, body: Value) -> Result<Value, String> {
        let admission = self.admission().map_err(|error| error.to_string())?;
        let answering = async {
            if body["kind"] != "ConversionReview" {
                return admission.review(&body, Some(path), Vec::new()).await;
            }
            let definition = path.strip_prefix(endpoint::CONVERSIONS);
            let definition = definition.and_then(|rest| rest.strip_prefix('/'));
            conversion::convert(&admission, body, definition).await
        };
        match AssertUnwindSafe(answering).catch_unwind().await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(panic) => {
                let panic = panic_text(panic.as_ref());
                Err(format!("the review could not be answered: {panic}"))
            }
        }
    }

    fn admission(&self) -> Result<Arc<Admission>, ReviewError> {
        self.0.admission.get().and_then(Weak::upgrade).ok_or(ReviewError::Early)
    }

    /// The ids of the admission handlers and conversions, as paths of the server.
    #[must_use]
    pub fn paths<'a>(handlers: impl IntoIterator<Item = &'a Handler>) -> Vec<String> {
        let handlers: Vec<Arc<Handler>> = handlers.into_iter().cloned().map(Arc::new).collect();
        let of = |family| {
            let handlers = handlers.iter().filter(move |it| it.kind.family() == family);
            handlers.cloned().collect::<Vec<_>>()
        };
        let mut paths: Vec<String> =
            of(Family::Admission).iter().map(|handler| handler.id.to_string()).collect();
        let charts = convert::charts(&of(Family::Conversion));
        paths.extend(charts.iter().map(|it| format!("{}/{}", endpoint::CONVERSIONS, it.name())));
        paths
    }

    /// Resolves when the cluster is configured to use the server.
    pub async fn settled(&self) {
        // The sender lives as long as this gate.
        let _ = self.0.is_settled.subscribe().wait_for(|is_settled| *is_settled).await;
    }

    /// Sets the address of the server for the cluster, and the name of the configurations to keep
    /// up to date, if they are managed.
    pub fn point(&self, client_config: Value, managed: Option<String>) {
        *self.0.managed.lock() = managed;
        self.0.client_config.send_replace(Some(client_config));
    }

    /// Opens the gate, and keeps the configurations up to date in the background.
    pub(super) fn open(
        &self,
        admission: Admission,
        snapshots: watch::Receiver<ClusterSnapshot>,
    ) -> Serving {
        let admission = Arc::new(admission);
        // Engines are started once, so it cannot be set yet.
        let _ = self.0.admission.set(Arc::downgrade(&admission));
        let keeping = keep_up(Arc::clone(&admission), self.clone(), snapshots);
        let task = AbortOnDropHandle::new(tokio::spawn(keeping));
        Serving { admission, managed: None, gate: Some(self.clone()), _tasks: vec![task] }
    }

    /// The name of the configurations that were written.
    pub(super) fn managed(&self) -> Option<String> {
        self.0.client_config.borrow().as_ref()?;
        self.0.managed.lock().clone()
    }
}

/// Writes the configurations whenever the server or the resources change, until it is dropped.
async fn keep_up(
    admission: Arc<Admission>,
    gate: ReviewGate,
    mut snapshots: watch::Receiver<ClusterSnapshot>,
) {
    admission.learn(None).await;
    let mut client_config = gate.0.client_config.subscribe();
    let mut is_created = false;
    let tenure = Arc::clone(admission.runtime.pool.tenure());
    loop {
        let is_standby = !tenure.is_chief();
        if is_standby {
            // Others may write meanwhile.
            is_created = false;
            admission.written.lock().clear();
        }
        let is_settled = is_standby || configure(&admission, &gate, &mut is_created).await;
        let is_pointed = is_settled && gate.managed().is_some();
        gate.0.is_settled.send_replace(is_pointed);
        tokio::select! {
            changed = snapshots.changed() => {
                if changed.is_err() {
                    return;
                }
                let resources = snapshots.borrow_and_update().resources.clone();
                admission.resources.write().extend(resources);
            }
            _ = client_config.changed() => {}
            () = tokio::time::sleep(PATIENCE), if !is_settled => {}
            () = tenure.appointed(), if is_standby => {}
        }
    }
}

async fn configure(admission: &Admission, gate: &ReviewGate, is_created: &mut bool) -> bool {
    let client_config = gate.0.client_config.borrow().clone();
    let (Some(client_config), Some(name)) = (client_config, gate.managed()) else { return true };
    let configuring = async {
        if !*is_created && !admission.handlers.is_empty() {
            configuration::create(admission, &name).await?;
            *is_created = true;
        }
        admission.point(&name, &client_config).await
    };
    let Err(error) = configuring.await else { return true };
    let error = crate::error_chain::chain(&error);
    tracing::warn!(error, "could not update the webhook configurations; retrying");
    false
}
