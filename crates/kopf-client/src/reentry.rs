//! Marks code that runs within a login, so that it does not wait for that very login.
//!
//! A login handler may use the operator's own client. If its credentials are rejected, every other
//! user of the client waits for the login; the login itself must get the rejection instead.

use std::sync::atomic::{AtomicU64, Ordering};

tokio::task_local! {
    /// The login that this task belongs to.
    static LOGIN: LoginId;
}

/// Distinguishes the logins of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoginId(u64);

impl LoginId {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs a login.
    pub(crate) async fn scope<F: Future>(self, login: F) -> F::Output {
        LOGIN.scope(self, login).await
    }

    /// Whether this code runs within that login.
    pub(crate) fn is_current(self) -> bool {
        LOGIN.try_with(|current| *current == self).unwrap_or(false)
    }
}

/// Makes a function part of the current login, if there is one, for running on another thread.
pub fn carry_login<R>(function: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let login = LOGIN.try_with(|current| *current).ok();
    move || match login {
        Some(login) => LOGIN.sync_scope(login, function),
        None => function(),
    }
}
