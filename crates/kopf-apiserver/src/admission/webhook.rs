//! One webhook of a configuration, read from its stored object.
//!
//! Plain data with upstream's defaults. Ordered by configuration name, then by position in the
//! list.

use std::sync::Arc;

use serde_json::Value;

use crate::Stored;
use crate::fields::{self, items, text, texts};
use crate::store::Snapshot;

/// One entry of `webhooks` in a configuration.
#[derive(Clone)]
pub(super) struct Webhook {
    configuration: Arc<Stored>,
    index: usize,
}

/// The action if a webhook cannot be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailurePolicy {
    Fail,
    Ignore,
}

impl Webhook {
    /// All webhooks of a kind of configuration, in the order in which they are called.
    pub(super) fn all(snapshot: &Snapshot, table: &str) -> Vec<Self> {
        snapshot
            .list(table, "")
            .flat_map(|(_, stored)| {
                let count = items(stored.content(), &["webhooks"]).len();
                (0..count).map(move |index| Self { configuration: Arc::clone(&stored), index })
            })
            .collect()
    }

    fn value(&self) -> &Value {
        &items(self.configuration.content(), &["webhooks"])[self.index]
    }

    /// The webhook's qualified name.
    pub(super) fn name(&self) -> &str {
        text(self.value(), &["name"])
    }

    pub(super) fn rules(&self) -> &[Value] {
        items(self.value(), &["rules"])
    }

    pub(super) fn client_config(&self) -> &Value {
        &self.value()["clientConfig"]
    }

    pub(super) fn namespace_selector(&self) -> Option<&Value> {
        self.value().get("namespaceSelector")
    }

    pub(super) fn object_selector(&self) -> Option<&Value> {
        self.value().get("objectSelector")
    }

    /// Name and expression of each match condition.
    pub(super) fn match_conditions(&self) -> impl Iterator<Item = (&str, &str)> {
        items(self.value(), &["matchConditions"])
            .iter()
            .map(|condition| (text(condition, &["name"]), text(condition, &["expression"])))
    }

    pub(super) fn failure_policy(&self) -> FailurePolicy {
        match text(self.value(), &["failurePolicy"]) {
            "Ignore" => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }
    }

    pub(super) fn timeout_seconds(&self) -> u64 {
        let seconds = fields::number(self.value(), &["timeoutSeconds"]).unwrap_or(10);
        u64::try_from(seconds).unwrap_or(10)
    }

    /// Whether requests for other versions of the same resource match as well.
    pub(super) fn matches_equivalents(&self) -> bool {
        text(self.value(), &["matchPolicy"]) != "Exact"
    }

    pub(super) fn may_be_reinvoked(&self) -> bool {
        text(self.value(), &["reinvocationPolicy"]) == "IfNeeded"
    }

    pub(super) fn supports_dry_run(&self) -> bool {
        matches!(text(self.value(), &["sideEffects"]), "None" | "NoneOnDryRun")
    }

    /// The first version in the webhook's list that this server supports.
    pub(super) fn review_version(&self) -> &str {
        texts(self.value(), &["admissionReviewVersions"])
            .into_iter()
            .find(|version| matches!(*version, "v1" | "v1beta1"))
            .unwrap_or("v1")
    }
}
