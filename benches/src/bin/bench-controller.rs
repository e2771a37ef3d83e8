//! The same task for a `Controller` of kube-rs: a status patch per object, a finalizer on demand.

use std::sync::Arc;
use std::time::Duration;

use benches::Widget;
use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Config as ControllerConfig, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

/// The number of concurrent objects, the same as our engine's concurrent writes.
const CONCURRENCY: u16 = 64;

#[derive(Debug)]
struct Failed(String);

impl std::fmt::Display for Failed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

struct Context {
    client: Client,
    has_finalizer: bool,
}

async fn handle(object: &Widget, api: &Api<Widget>) -> Result<Action, Failed> {
    let is_handled = object.status.as_ref().is_some_and(|status| status.create.is_some());
    if !is_handled {
        let patch = json!({"status": {"create": {"ok": true}}});
        api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .map_err(|error| Failed(error.to_string()))?;
    }
    Ok(Action::await_change())
}

async fn reconcile(object: Arc<Widget>, context: Arc<Context>) -> Result<Action, Failed> {
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<Widget> = Api::namespaced(context.client.clone(), &namespace);
    if !context.has_finalizer {
        return handle(&object, &api).await;
    }
    finalizer(&api, "bench.kopf.dev/finalizer", object, |event| async {
        match event {
            Event::Apply(object) => handle(&object, &api).await,
            Event::Cleanup(_) => Ok(Action::await_change()),
        }
    })
    .await
    .map_err(|error| Failed(error.to_string()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let has_finalizer = std::env::var("CASE").is_ok_and(|case| case == "delete");
    let context = Arc::new(Context { client: client.clone(), has_finalizer });
    let on_error = |_: Arc<Widget>, error: &Failed, _: Arc<Context>| {
        eprintln!("{error}");
        Action::requeue(Duration::from_secs(1))
    };
    Controller::new(Api::<Widget>::all(client), watcher::Config::default())
        .with_config(ControllerConfig::default().concurrency(CONCURRENCY))
        .run(reconcile, on_error, context)
        .for_each(|_| futures::future::ready(()))
        .await;
    Ok(())
}
