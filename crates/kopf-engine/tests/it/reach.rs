//! The log while the API server cannot be reached, or rejects what the operator needs.

use std::sync::Arc;

use kopf_apiserver::{Server, User};
use kopf_client::ConnectionInfo;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::registry::Registry;
use kopf_engine::Engine;
use kopf_model::Selector;

use crate::logged::Logged;
use crate::world::{World, eventually, handler};

/// A port of this machine where nothing listens.
fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn logging_in(server: String) -> Handler {
    handler("login_fn", HandlerKind::Login, move |_| {
        let info = ConnectionInfo {
            server: server.clone(),
            insecure: true,
            token: Some("t".into()),
            ..ConnectionInfo::default()
        };
        Ok(Output::Opaque(Arc::new(info)))
    })
}

/// Several handlers, since each of their resources has its own watch.
fn handlers(world: &World) -> Vec<Handler> {
    let plurals = ["configmaps", "secrets", "pods"];
    let several = plurals.map(|plural| {
        let mut handler = world.noting("create_fn", HandlerKind::Create);
        handler.selector = Some(Selector::parse(&["v1", plural]).expect("a selector"));
        handler.id = plural.into();
        handler
    });
    several.into_iter().collect()
}

#[tokio::test]
async fn a_server_that_is_not_reached_is_named_once_and_does_not_hold_the_end_up() {
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let port = closed_port();
    let mut handlers = handlers(&world);
    handlers.push(logging_in(format!("https://127.0.0.1:{port}")));
    let engine = Engine::builder(Registry::from_iter(handlers)).build().start();
    let status = engine.status().clone();
    let attempts = || status.snapshot().requests.get(&("GET".to_owned(), 0)).copied();
    eventually("several attempts", || attempts().unwrap_or_default() > 5).await;
    engine.stop().await.expect("a clean end");
    let line = logged.line_with(&format!("The API server at https://127.0.0.1:{port} cannot be"));
    assert!(line.contains("refused") && line.contains("kubeconfig"), "{line}");
    assert_eq!(logged.count("WARN"), 1, "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_request_is_logged_with_the_rule_that_would_allow_it() {
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let server = Server::builder().rbac(true).controllers(false).build();
    let account = User::service_account("default", "demo");
    let client = kube::Client::new(server.service_as(account), "default");
    let engine = Engine::builder(Registry::from_iter(handlers(&world))).client(client).build();
    let engine = engine.start();
    let rule = "{apiGroups: [''], resources: [secrets], verbs: [list, watch]}";
    eventually("the refusal", || logged.count("secrets") > 0).await;
    let line = logged.line_with(rule);
    assert!(line.contains("cannot list resource") && line.contains("a ClusterRole"), "{line}");
    engine.stop().await.expect("a clean end");
}
