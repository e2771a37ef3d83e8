//! One test's own cluster: forked from a prepared one, with helpers for typed objects.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::Duration;

use kopf_apiserver::Server;
use kopf_engine::{Clock, EngineBuilder, Running};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clock::VirtualClock;

/// The prepared server that worlds are forked from: namespaces exist, schemas are parsed.
static PREPARED: LazyLock<Server> = LazyLock::new(|| Server::builder().clock(VirtualClock).build());

/// The namespace that helpers use.
const NAMESPACE: &str = "default";
/// How much virtual time `until` gives a condition.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often `until` looks, in virtual time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Less than any delay that matters; with paused time, it passes when nothing else can run.
const A_MOMENT: Duration = Duration::from_millis(1);

/// What went wrong in a world.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The server refused.
    #[error("the server refused")]
    Refused(#[from] kube::Error),
    /// A condition did not come true.
    #[error("{what} did not come true within {PATIENCE:?} of virtual time; last seen: {last}")]
    Never {
        /// The condition.
        what: String,
        /// What was seen instead.
        last: String,
    },
}

/// One test's own cluster.
pub struct World {
    server: Server,
    client: Client,
}

/// Runs a test in a world of its own, with paused time.
///
/// # Panics
/// Panics when the runtime cannot be built, and when the test panics.
pub fn run<T, F: Future<Output = T>>(test: impl FnOnce(World) -> F) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread can always be built");
    runtime.block_on(async { test(World::new()).await })
}

impl World {
    /// A new world; needs a tokio runtime, best one with paused time (see [`run`]).
    #[must_use]
    pub fn new() -> Self {
        let server = PREPARED.fork();
        let client = Client::new(server.service(), NAMESPACE);
        Self { server, client }
    }

    /// The API server: faults, request log, controllers.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A client with all rights.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of a namespaced type in the default namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), NAMESPACE)
    }

    /// Installs a custom resource definition; one that is there already is brought up to date.
    ///
    /// # Errors
    /// Fails when the server refuses it.
    pub async fn define(&self, definition: &Value) -> Result<(), WorldError> {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = http::Request::builder()
            .method("PATCH")
            .uri(format!("{path}/{name}?fieldManager=kopf-testing&force=true"))
            .header("content-type", "application/apply-patch+yaml")
            .body(definition.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        self.client.request::<Value>(request).await?;
        Ok(())
    }

    /// Creates an object.
    ///
    /// # Errors
    /// Fails when the server refuses it.
    pub async fn create<K>(&self, object: &K) -> Result<K, WorldError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
        K::DynamicType: Default,
    {
        Ok(self.api().create(&PostParams::default(), object).await?)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// Fails when there is none.
    pub async fn get<K>(&self, name: &str) -> Result<K, WorldError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        Ok(self.api().get(name).await?)
    }

    /// Changes an object with a merge patch.
    ///
    /// # Errors
    /// Fails when the server refuses it.
    pub async fn patch<K>(&self, name: &str, patch: &Value) -> Result<K, WorldError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        Ok(self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Asks for the deletion of an object.
    ///
    /// # Errors
    /// Fails when there is none.
    pub async fn delete<K>(&self, name: &str) -> Result<(), WorldError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Starts an operator in this world, with its definitions, and waits until it watches.
    ///
    /// Takes an engine's builder, or anything that becomes one, such as `kopf::Operator`.
    ///
    /// # Panics
    /// Panics when the server refuses a definition of the operator.
    pub async fn start(&self, operator: impl Into<EngineBuilder>) -> Running {
        let operator = operator.into();
        for definition in operator.definitions() {
            self.define(&definition).await.expect("the server accepts derived definitions");
        }
        let clock = Clock::following_tokio(VirtualClock.now());
        let running = operator.client(self.client()).clock(clock).build().start();
        running.settled().await;
        running
    }

    /// Resolves when nobody has anything to do now: no handler, no controller, no request.
    ///
    /// What waits for a later moment, such as a retry, does not count.
    pub async fn settled(&self) {
        // Paused time moves only when every task waits for it; so once this sleep is over, all
        // that could be done without waiting has been done. The second one is for work that the
        // first one woke up.
        for _ in 0..2 {
            tokio::time::sleep(A_MOMENT).await;
            self.server.settle().await;
        }
    }

    /// Lets virtual time pass, with everything that happens in it.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
        self.settled().await;
    }

    /// Waits until an object is as wanted, and returns it.
    ///
    /// # Errors
    /// Fails when it is not within ten minutes of virtual time.
    pub async fn until<K>(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K, WorldError>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let last = match self.get::<K>(name).await {
                Ok(object) if condition(&object) => return Ok(object),
                Ok(object) => format!("{object:?}"),
                Err(error) => error.to_string(),
            };
            if tokio::time::Instant::now() >= deadline {
                return Err(WorldError::Never { what: format!("{what} of {name}"), last });
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
