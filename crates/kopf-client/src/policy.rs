//! The limits of requests to a cluster.

use std::time::Duration;

/// Limits of requests, from the operator's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The timeout of one attempt.
    pub request_timeout: Duration,
    /// The timeout for connecting; by default, that of the credentials.
    pub connect_timeout: Option<Duration>,
    /// The same for lists and watches; by default, as for other requests.
    pub watch_connect_timeout: Option<Duration>,
    /// The pauses between attempts.
    pub error_backoffs: Vec<Duration>,
    /// Whether to follow `Retry-After` even if it is shorter than the pause.
    pub enforce_retry_after: bool,
    /// Whether to use the proxies from the environment.
    pub trust_env: bool,
    /// The maximum number of concurrent writes.
    pub concurrent_writes_max: usize,
    /// Whether to keep `metadata.managedFields` of responses.
    pub managed_fields: bool,
    /// Whether to add the missing RBAC rule to the message of a forbidden request.
    pub names_rules: bool,
    /// The field manager for applied manifests.
    pub field_manager: String,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(300),
            connect_timeout: None,
            watch_connect_timeout: None,
            error_backoffs: [1, 1, 2, 3, 5, 8, 13, 21].map(Duration::from_secs).to_vec(),
            enforce_retry_after: false,
            trust_env: false,
            concurrent_writes_max: 128,
            managed_fields: false,
            names_rules: false,
            field_manager: "kopf".to_owned(),
        }
    }
}
