//! Completes what was started, even if nobody waits for it any more.
//!
//! A task for every write would cost a switch between tasks, so a write runs in the task of its
//! connection, and moves to its own task only when it is dropped early.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::{BoxFuture, CatchUnwind};
use tokio::runtime::Handle;

/// A future that continues in its own task when it is dropped before it is ready.
///
/// Its error is the message of a panic.
pub(super) struct Completion<T: Send + 'static> {
    // `None` once it is ready.
    future: Option<CatchUnwind<AssertUnwindSafe<BoxFuture<'static, T>>>>,
}

impl<T: Send + 'static> Completion<T> {
    pub(super) fn new(future: BoxFuture<'static, T>) -> Self {
        Self { future: Some(AssertUnwindSafe(future).catch_unwind()) }
    }
}

impl<T: Send + 'static> Future for Completion<T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        let outcome = std::task::ready!(future.poll_unpin(context));
        self.future = None;
        Poll::Ready(outcome.map_err(|panic| message_of(&*panic)))
    }
}

impl<T: Send + 'static> Drop for Completion<T> {
    fn drop(&mut self) {
        // Without a runtime, the whole server is gone.
        if let (Some(future), Ok(runtime)) = (self.future.take(), Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the request panicked: {}", text.unwrap_or("no message"))
}

#[cfg(test)]
mod tests;
