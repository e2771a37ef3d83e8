//! The limits of requests to a cluster.

use std::time::Duration;

/// Limits of requests, from the operator's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long one attempt may take.
    pub request_timeout: Duration,
    /// How long connecting may take; as the credentials say if not given.
    pub connect_timeout: Option<Duration>,
    /// The same for lists and watches; as for other requests if not given.
    pub watch_connect_timeout: Option<Duration>,
    /// The pauses between attempts.
    pub error_backoffs: Vec<Duration>,
    /// Obey `Retry-After` even if it is shorter than the pause.
    pub enforce_retry_after: bool,
    /// Use the proxies that the environment names.
    pub trust_env: bool,
    /// How many writes may be under way.
    pub concurrent_writes_max: usize,
    /// Also hand over `metadata.managedFields` of answers.
    pub managed_fields: bool,
    /// Add to the message of a forbidden request which rule the operator lacks.
    pub names_rules: bool,
    /// Who writes what is applied, for the server.
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
