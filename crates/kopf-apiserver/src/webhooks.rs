//! Finds and calls webhooks, for admission and conversion.
//!
//! `call` sends a review over HTTPS or to an in-process function; `resolver` finds the target of a
//! service or a URL.

mod call;
mod resolver;

use serde_json::Value;

pub use resolver::{FallibleWebhookFunction, WebhookFunction, WebhookTarget};

/// The webhooks of one server.
#[derive(Default)]
pub(crate) struct Webhooks {
    /// The targets of webhooks that are named by services or given as functions.
    pub(crate) targets: resolver::Targets,
    caller: call::Caller,
}

impl Webhooks {
    /// A copy of the webhooks for another server, which may add its own later.
    pub(crate) fn fork(&self) -> Self {
        Self { targets: self.targets.fork(), caller: call::Caller::default() }
    }

    /// Calls a webhook.
    ///
    /// The error says why there is no response, in the words of Go's HTTP client.
    pub(crate) async fn ask(
        &self,
        client_config: &Value,
        timeout_seconds: u64,
        review: &Value,
    ) -> Result<Value, String> {
        self.caller.call(client_config, &self.targets, timeout_seconds, review).await
    }
}
