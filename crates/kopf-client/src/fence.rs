//! The fence in front of writes: they are sent only while this replica has the right to act.
//!
//! The engine's own writes are fenced by their [`crate::Cluster`]. Writes of user code are fenced
//! by the handler in which they happen: the same client may be used by code that needs no right,
//! such as startup handlers and webhooks. Tasks that a handler spawns are not fenced.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use tower::{BoxError, Service};

/// Returns the number of our current right to make changes, if we have one at this very moment.
pub type Fence = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

tokio::task_local! {
    /// The fence of the handler that this task runs.
    static FENCE: Gate;
}

/// A fence, possibly limited to one right: what was begun under it is never sent under another.
#[derive(Clone)]
pub(crate) struct Gate {
    fence: Fence,
    /// The right under which something was begun, if there was one.
    begun_under: Option<Option<u64>>,
}

impl Gate {
    /// A fence for anything.
    pub(crate) fn new(fence: Fence) -> Self {
        Self { fence, begun_under: None }
    }

    /// The same fence for what begins now.
    pub(crate) fn bound(&self) -> Self {
        Self { fence: Arc::clone(&self.fence), begun_under: Some((self.fence)()) }
    }

    fn is_open(&self) -> bool {
        let now = (self.fence)();
        now.is_some() && self.begun_under.is_none_or(|right| right == now)
    }
}

/// Why a write was not sent.
#[derive(Debug, thiserror::Error)]
#[error("this replica does not lead (any more)")]
pub(crate) struct Fenced;

/// Runs a handler whose writes are sent only while our current right is valid.
pub async fn within_fence<F: Future>(fence: &Fence, handler: F) -> F::Output {
    FENCE.scope(Gate::new(Arc::clone(fence)).bound(), handler).await
}

/// Keeps a function behind the current fence, if there is one, when it runs on another thread.
pub fn carry_fence<R>(function: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let fence = current();
    move || match fence {
        Some(fence) => FENCE.sync_scope(fence, function),
        None => function(),
    }
}

fn current() -> Option<Gate> {
    FENCE.try_with(Gate::clone).ok()
}

/// The fence that a request of user code must pass.
pub(crate) fn of_request(method: &Method) -> Option<Gate> {
    current().filter(|_| !method.is_safe())
}

/// Sends while the fence is open: it is checked before the first step and before every further one,
/// such as after a connection was established. Nothing is sent after it has closed.
pub(crate) async fn send_while_open<F: Future>(
    gate: Option<&Gate>,
    sending: F,
) -> Result<F::Output, Fenced> {
    let mut sending = std::pin::pin!(sending);
    std::future::poll_fn(|context| match gate {
        Some(gate) if !gate.is_open() => Poll::Ready(Err(Fenced)),
        _ => sending.as_mut().poll(context).map(Ok),
    })
    .await
}

/// A ready client behind the fence of the handler that uses it.
#[derive(Clone)]
pub(crate) struct FencedClient(kube::Client);

impl FencedClient {
    pub(crate) fn client(client: kube::Client) -> kube::Client {
        let namespace = client.default_namespace().to_owned();
        kube::Client::new(Self(client), namespace)
    }
}

impl Service<Request<Body>> for FencedClient {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        // Called by a task of the client, but polled by the task that sends the request.
        Box::pin(async move {
            let fence = of_request(request.method());
            let sent = send_while_open(fence.as_ref(), client.send(request)).await?;
            Ok(sent?)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A fence that is open for every right except 0.
    fn fence() -> (Arc<AtomicU64>, Fence) {
        let right = Arc::new(AtomicU64::new(1));
        let current = Arc::clone(&right);
        (right, Arc::new(move || Some(current.load(Ordering::Relaxed)).filter(|it| *it > 0)))
    }

    #[tokio::test]
    async fn only_changes_within_a_handler_are_fenced() {
        assert!(of_request(&Method::PATCH).is_none());
        within_fence(&fence().1, async {
            assert!(of_request(&Method::GET).is_none());
            assert!(of_request(&Method::PATCH).is_some());
            let function = carry_fence(|| of_request(&Method::DELETE).is_some());
            assert!(tokio::task::spawn_blocking(function).await.expect("no panic"));
        })
        .await;
    }

    #[tokio::test]
    async fn a_handler_of_a_former_right_sends_nothing() {
        let (right, fence) = fence();
        within_fence(&fence, async {
            let send = || async {
                let fence = of_request(&Method::PATCH);
                send_while_open(fence.as_ref(), async {}).await.is_ok()
            };
            assert!(send().await);
            right.store(0, Ordering::Relaxed);
            assert!(!send().await);
            right.store(2, Ordering::Relaxed);
            assert!(!send().await, "others may have acted in between");
        })
        .await;
    }
}
