//! The client for user code: gets the session from the vault for every request, so that it uses new
//! logins too.
//!
//! Adds nothing else but the fence of the handler: no retries, no limits, no counters. Those are for
//! the engine's own requests.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, StatusCode};
use kube::client::Body;
use tower::{BoxError, Service};

use crate::fence;
use crate::transport_error::is_certificate_rejected;
use crate::vault::{Answer, Vault};

/// Sends requests with the current credentials.
#[derive(Clone)]
pub(crate) struct Renewing {
    vault: Arc<Vault>,
}

impl Renewing {
    /// A client that outlives any credentials.
    pub(crate) fn client(vault: Arc<Vault>, default_namespace: String) -> kube::Client {
        kube::Client::new(Self { vault }, default_namespace)
    }

    async fn send(self, request: Request<Body>) -> Result<Answer, BoxError> {
        let (parts, body) = request.into_parts();
        let fence = fence::of_request(&parts.method);
        // Kept, since it may have to be sent again.
        let bytes = body.collect_bytes().await?;
        let again = || Request::from_parts(parts.clone(), bytes.clone());
        let first = self.vault.session().await?;
        let mut session = Arc::clone(&first);
        loop {
            let sending = session.writing.forward(again());
            let refusal = match fence::send_while_open(fence.as_ref(), sending).await? {
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED => Ok(response),
                Err(error) if is_certificate_rejected(&*error) => Err(error),
                other => return other,
            };
            session = match self.vault.replace(&session, &first).await? {
                Some(other) => other,
                None => return refusal,
            };
        }
    }
}

impl Service<Request<Body>> for Renewing {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
