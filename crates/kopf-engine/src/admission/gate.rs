//! Reviews by a server of the front end: it hands the requests in, and tells where the cluster finds
//! it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::review::ReviewError;
use super::{Admission, Serving};
use crate::insights::Surroundings;

/// The pause before a configuration that could not be written is tried again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a front end submits the reviews that its own server receives.
///
/// Given to the builder of the engine; works from the moment when the cluster is reached.
#[derive(Clone, Default)]
pub struct ReviewGate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Set by the engine when the cluster is reached.
    admission: OnceLock<Arc<Admission>>,
    /// How the cluster reaches the server; written by the front end.
    client_config: watch::Sender<Option<Value>>,
    /// The name of the configurations to keep up to date; written by the front end.
    managed: Mutex<Option<String>>,
}

impl ReviewGate {
    /// Answers a review, for one handler by its id or for all.
    ///
    /// # Errors
    /// Fails when the request is incomplete, or is about a resource that no handler is for.
    pub async fn review(
        &self,
        body: &Value,
        webhook: Option<&str>,
        headers: Vec<(String, String)>,
    ) -> Result<Value, ReviewError> {
        let admission = self.0.admission.get().ok_or(ReviewError::Early)?;
        admission.review(body, webhook, headers).await
    }

    /// Tells how the cluster reaches the server, and the name of the configurations to keep up to
    /// date, if they are to be managed.
    pub fn point(&self, client_config: Value, managed: Option<String>) {
        *self.0.managed.lock() = managed;
        self.0.client_config.send_replace(Some(client_config));
    }

    /// Opens the gate, and keeps the configurations up to date in the background.
    pub(super) fn open(
        &self,
        admission: Admission,
        surroundings: watch::Receiver<Surroundings>,
    ) -> Serving {
        let admission = Arc::new(admission);
        // Engines are started once, so that it is not set yet.
        let _ = self.0.admission.set(Arc::clone(&admission));
        let keeping = keep_up(Arc::clone(&admission), self.clone(), surroundings);
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
    mut surroundings: watch::Receiver<Surroundings>,
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
        tokio::select! {
            changed = surroundings.changed() => {
                if changed.is_err() {
                    return;
                }
                let resources = surroundings.borrow_and_update().resources.clone();
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
        if !*is_created {
            admission.create(&name).await?;
            *is_created = true;
        }
        admission.point(&name, &client_config).await
    };
    let Err(error) = configuring.await else { return true };
    let error = crate::cycle::chain(&error);
    tracing::warn!(error, "the webhooks could not be brought up to date; trying again");
    false
}
