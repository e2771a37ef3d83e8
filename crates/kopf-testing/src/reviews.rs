//! Connects the server to an operator's review handlers through a function call.
//!
//! No sockets are involved, so reviews work in virtual time. The engine's own server is bypassed;
//! how it handles bytes and certificates is tested there.

use std::sync::Arc;

use kopf_apiserver::{Server, WebhookTarget};
use kopf_core::endpoint;
use kopf_engine::{EngineBuilder, ReviewGate};
use serde_json::{Value, json};

use crate::account::OPERATOR;
use crate::transport::Transport;

/// The error of a crashed operator.
const REFUSED: &str = "dial tcp 127.0.0.1:443: connect: connection refused";

/// Makes the server send reviews to an operator, if it has review handlers.
pub(crate) fn connect(
    server: &Server,
    operator: EngineBuilder,
    transport: Transport,
) -> (EngineBuilder, Transport) {
    let paths = ReviewGate::paths(operator.handlers());
    if paths.is_empty() {
        return (operator, transport);
    }
    let gate = ReviewGate::default();
    let client_config = json!({"url": format!("https://{OPERATOR}.test")});
    for path in paths {
        let addressed = endpoint::addressed(&client_config, &path);
        let url = addressed["url"].as_str().unwrap_or_default();
        server.webhook_url(url, target(path, gate.clone(), transport.clone()));
    }
    gate.point(client_config, Some(format!("{OPERATOR}.kopf.dev")));
    (operator.review_gate(gate.clone()), transport.with_reviews(gate))
}

/// Responds to reviews sent to a path, while the operator is alive.
fn target(path: String, gate: ReviewGate, transport: Transport) -> WebhookTarget {
    WebhookTarget::Fallible(Arc::new(move |review: Value| {
        let (path, gate, transport) = (path.clone(), gate.clone(), transport.clone());
        Box::pin(async move {
            if transport.is_shut() {
                return Err(REFUSED.to_owned());
            }
            tokio::select! {
                answer = gate.answer(&path, review) => answer,
                () = transport.killed() => Err(REFUSED.to_owned()),
            }
        })
    }))
}
