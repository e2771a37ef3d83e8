//! Where webhooks are, and how they are called: for admission and for conversion.
//!
//! `call` carries a review over HTTPS or to a function in the process, `resolver` says who answers
//! for a service or a URL.

mod call;
mod resolver;

use serde_json::Value;

pub use resolver::{FallibleWebhookFunction, WebhookFunction, WebhookTarget};

/// The webhooks of one server.
#[derive(Default)]
pub(crate) struct Webhooks {
    /// Where webhooks that are named by services or given as functions live.
    pub(crate) targets: resolver::Targets,
    caller: call::Caller,
}

impl Webhooks {
    /// The same webhooks for another server, which may get others later.
    pub(crate) fn fork(&self) -> Self {
        Self { targets: self.targets.fork(), caller: call::Caller::default() }
    }

    /// Asks a webhook.
    ///
    /// The error tells why there is no answer, in the words of Go's HTTP client.
    pub(crate) async fn ask(
        &self,
        client_config: &Value,
        timeout_seconds: u64,
        review: &Value,
    ) -> Result<Value, String> {
        self.caller.call(client_config, &self.targets, timeout_seconds, review).await
    }
}
