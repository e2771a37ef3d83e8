//! Login handlers that use the operator's own client, for which they must get credentials.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{Call, Invocation, Invoke, Output, Returned};
use kopf_core::registry::Registry;
use kopf_core::settings::Settings;
use kopf_engine::{Clock, Engine, EngineBuilder};
use serde_json::json;

use crate::proxy::{Fault, Proxy, Rule};
use crate::world::{Calls, Watchdog, World, async_handler};

/// Far below the timeouts of requests.
const SOON: Duration = Duration::from_secs(30);

fn proxied(world: &World) -> kube::Client {
    let proxy = Proxy { service: world.server.service(), journal: world.journal.clone() };
    kube::Client::new(proxy, "default")
}

/// Requests the server's version with the operator's client, and returns the same client again.
async fn ask_and_log_in(call: Call, calls: Calls, fresh: kube::Client) -> Returned {
    match call.operator.state.get::<kube::Client>() {
        None => calls.note("first"),
        Some(client) => match client.apiserver_version().await {
            Ok(_) => calls.note("answered"),
            Err(error) => {
                let is_refused = format!("{error:?}").contains("401");
                calls.note(if is_refused { "refused" } else { "failed" });
            }
        },
    }
    Ok(Output::Opaque(Arc::new(fresh)))
}

/// The same on a separate thread.
struct Blocking(Calls, kube::Client);

impl Invoke for Blocking {
    fn invoke(&self, call: Call) -> Invocation {
        let (calls, fresh) = (self.0.clone(), self.1.clone());
        Invocation::Blocking(Box::new(move || {
            tokio::runtime::Handle::current().block_on(ask_and_log_in(call, calls, fresh))
        }))
    }
}

fn engine(login: Handler, world: &World) -> EngineBuilder {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    let create = world.noting("create_fn", HandlerKind::Create);
    Engine::builder(Registry::from_iter([login, create]))
        .settings(settings)
        .clock(Clock::following_tokio("2026-01-01T00:00:00Z".parse().expect("a time")))
}

fn refused(path: &'static str, times: usize) -> Rule {
    Rule { method: None, path, watches: Some(false), times, fault: Fault::Answer(401, None) }
}

async fn is_handled_soon(world: &World, login: Handler) {
    let engine = world.start_built(engine(login, world)).await;
    world.journal.add_rule(refused("/version", usize::MAX));
    world.journal.add_rule(refused("/kopfexamples/a", 1));
    world.create("a", json!({"x": 1})).await;
    let begun = tokio::time::Instant::now();
    world.until_handled("a").await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(world.calls.all(), ["first", "create_fn:0", "refused"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_login_handler_with_the_rejected_client_is_rejected_too() {
    let world = World::new().await;
    let (calls, fresh) = (world.calls.clone(), proxied(&world));
    let login = async_handler("log_in", HandlerKind::Login, move |call| {
        ask_and_log_in(call, calls.clone(), fresh.clone())
    });
    is_handled_soon(&world, login).await;
}

#[tokio::test(start_paused = true)]
async fn a_blocking_login_handler_with_the_rejected_client_is_rejected_too() {
    let _watchdog = Watchdog::new("a login waits for itself");
    let world = World::new().await;
    let mut login = world.noting("log_in", HandlerKind::Login);
    login.invoke = Arc::new(Blocking(world.calls.clone(), proxied(&world)));
    is_handled_soon(&world, login).await;
}
