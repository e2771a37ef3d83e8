//! Why there are no credentials.

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// No source had credentials.
    #[error("no credentials were found: neither a kubeconfig nor a service account")]
    Nothing,
    /// The login succeeded, but returned no credentials, or only expired ones.
    #[error("ran out of valid credentials: the login has returned none")]
    Empty,
    /// The kubeconfig or the service account cannot be used.
    #[error("could not use the credentials of {from}")]
    Unusable {
        /// The source.
        from: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A login handler uses the operator's client, which has no credentials at the moment.
    #[error(
        "a login handler cannot use the operator's client, which is waiting for this login; create another client"
    )]
    Recursive,
    /// A login handler failed.
    #[error("login failed: {message}")]
    Handler {
        /// The handler.
        handler: String,
        /// The message of the handler.
        message: String,
    },
}

/// The credentials of this source cannot be used.
pub(crate) fn unusable(
    from: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> LoginError {
    LoginError::Unusable { from: from.to_owned(), source: source.into() }
}
