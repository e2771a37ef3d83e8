//! Servers that are prepared once per process and forked for every world.
//!
//! Owns the prepared servers: those without definitions, and those with the definitions of
//! operators that were started before. Preparing one takes milliseconds, forking it does not.

use std::sync::LazyLock;

use http::Method;
use kopf_apiserver::Server;
use kopf_engine::EngineBuilder;
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;

use crate::account::{NAMESPACE, Rights};
use crate::clock::VirtualClock;
use crate::error::WorldError;
use crate::rest::send;

/// Servers with parsed schemas, whose controllers have finished their initial work.
static PREPARED: LazyLock<Server> = LazyLock::new(|| on_own_thread(|| prepared(false)));
static PREPARED_WITH_RBAC: LazyLock<Server> = LazyLock::new(|| on_own_thread(|| prepared(true)));
/// The same with definitions; locked while one is prepared, since other tests wait for the same
/// one.
static DEFINED: Mutex<Vec<(bool, Definitions, Server)>> = Mutex::new(Vec::new());
/// How many sets of definitions are kept.
const DEFINED_MAX: usize = 64;
/// The path of custom resource definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The server of one world, and its client.
pub(crate) struct PreparedServer {
    pub(crate) server: Server,
    pub(crate) client: Client,
}

/// The definitions that an operator needs.
#[derive(Clone, PartialEq)]
pub(crate) struct Definitions {
    /// Updated if they exist.
    own: Vec<Value>,
    /// Left unchanged if they exist: the existing ones may be more complete.
    implied: Vec<Value>,
}

impl Definitions {
    pub(crate) fn of(operator: &EngineBuilder) -> Self {
        Self { own: operator.definitions(), implied: operator.implied_definitions() }
    }

    pub(crate) fn implied_by(operator: &EngineBuilder) -> Self {
        Self { own: Vec::new(), implied: operator.implied_definitions() }
    }

    /// Installs them.
    pub(crate) async fn install(&self, client: &Client) -> Result<(), WorldError> {
        for definition in &self.own {
            apply_definition(client, definition).await?;
        }
        for definition in &self.implied {
            create_definition(client, definition).await?;
        }
        Ok(())
    }
}

impl PreparedServer {
    /// A server without definitions.
    pub(crate) fn plain(rights: Rights) -> Self {
        Self::on(base(rights))
    }

    /// A server with all definitions; `None` if the server rejects a definition.
    pub(crate) fn with(rights: Rights, definitions: &Definitions) -> Option<Self> {
        let rbac = rights != Rights::All;
        let mut known = DEFINED.lock();
        let is_meant = |it: &&(bool, Definitions, Server)| it.0 == rbac && it.1 == *definitions;
        if let Some((_, _, server)) = known.iter().find(is_meant) {
            return Some(Self::on(server));
        }
        let server =
            on_own_thread(|| runtime(false).block_on(defined(base(rights), definitions))).ok()?;
        let prepared_server = Self::on(&server);
        if known.len() < DEFINED_MAX {
            known.push((rbac, definitions.clone(), server));
        }
        Some(prepared_server)
    }

    fn on(server: &Server) -> Self {
        let server = server.fork();
        let client = Client::new(server.service(), NAMESPACE);
        Self { server, client }
    }
}

/// Creates or updates a definition.
pub(crate) async fn apply_definition(
    client: &Client,
    definition: &Value,
) -> Result<(), WorldError> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{DEFINITIONS}/{name}?fieldManager=kopf-testing&force=true");
    let content_type = "application/apply-patch+yaml";
    send(client, Method::PATCH, &path, content_type, definition).await.map(drop)
}

/// Creates a definition, unless it exists.
async fn create_definition(client: &Client, definition: &Value) -> Result<(), WorldError> {
    match send(client, Method::POST, DEFINITIONS, "application/json", definition).await {
        Err(WorldError::Refused(kube::Error::Api(status))) if status.code == 409 => Ok(()),
        other => other.map(drop),
    }
}

fn base(rights: Rights) -> &'static Server {
    if rights == Rights::All { &PREPARED } else { &PREPARED_WITH_RBAC }
}

/// A server whose controllers have created the default objects of every namespace.
fn prepared(rbac: bool) -> Server {
    let server = Server::builder().clock(VirtualClock).rbac(rbac).build();
    runtime(false).block_on(server.settle());
    // Without the controllers, whose tasks have ended with their runtime.
    server.fork()
}

async fn defined(base: &Server, definitions: &Definitions) -> Result<Server, WorldError> {
    let PreparedServer { server, client } = PreparedServer::on(base);
    definitions.install(&client).await?;
    server.settle().await;
    Ok(server.fork())
}

/// Runs on a separate thread, since worlds may be created inside a runtime.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join())
        .expect("preparing a server needs nothing from outside")
}

/// A single-threaded runtime.
pub(crate) fn runtime(is_paused: bool) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(is_paused)
        .build()
        .expect("a runtime of one thread can always be built")
}
