//! Runs user code: futures on the reactor, blocking functions on a bounded pool, panics caught.
//!
//! Decides nothing about retries; returns the result of the handler.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use kopf_core::handler::Handler;
use kopf_core::invoke::{BoxFuture, Call, HandlerError, Invocation, Returned, panic_text};
use kopf_core::occasion::Occasion;
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use crate::leadership::Tenure;
use crate::reporting::lines::{LineSource, within, within_blocking};

/// A poll of an async handler that takes longer than this delays everything else.
const SLOW_POLL: Duration = Duration::from_millis(100);
/// The target of warnings about slow polls. Front ends whose handlers do not run in polls ignore
/// them: their polls are slow only if the machine is.
pub const SLOW_POLLS: &str = "kopf_engine::slow_polls";
/// Waiting longer than this for a free thread is worth a warning.
const POOL_PATIENCE: Duration = Duration::from_secs(1);

/// The pool for blocking handlers.
pub(crate) struct Pool {
    seats: Arc<Semaphore>,
    /// Written when the settings are known, read for the status.
    size: AtomicUsize,
    /// How many handlers are waiting for a seat.
    waiting: AtomicUsize,
    /// Seats to be removed as soon as their handlers have ended.
    excess: Arc<AtomicUsize>,
    /// Whether this replica may act.
    tenure: Arc<Tenure>,
}

/// A token of any kind that lives as long as any code of a handler runs.
pub(crate) type Alive = dyn std::any::Any + Send + Sync;

/// Counts a handler while it waits.
struct WaitGuard<'a>(&'a AtomicUsize);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Creates a pool that runs this many blocking handlers at once.
    pub(crate) fn new(size: usize, tenure: Arc<Tenure>) -> Self {
        let size = size.max(1);
        Self {
            seats: Arc::new(Semaphore::new(size)),
            size: AtomicUsize::new(size),
            waiting: AtomicUsize::new(0),
            excess: Arc::default(),
            tenure,
        }
    }

    /// Whether this replica may act.
    pub(crate) fn tenure(&self) -> &Arc<Tenure> {
        &self.tenure
    }

    /// Changes how many blocking handlers run at once; running ones continue.
    pub(crate) fn resize(&self, size: usize) {
        let size = size.max(1);
        let former = self.size.swap(size, Ordering::Relaxed);
        for _ in former..size {
            if !take_one(&self.excess) {
                self.seats.add_permits(1);
            }
        }
        let removed = former.saturating_sub(size);
        // Only free seats can be removed now.
        let forgotten = self.seats.forget_permits(removed);
        self.excess.fetch_add(removed - forgotten, Ordering::Relaxed);
    }

    /// How many handlers are waiting for a free thread now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many handlers run on the pool now.
    pub(crate) fn busy(&self) -> usize {
        let seats = self.size.load(Ordering::Relaxed) + self.excess.load(Ordering::Relaxed);
        seats.saturating_sub(self.seats.available_permits())
    }

    /// Runs one invocation to its end; the token lives as long as any code of the handler runs.
    pub(crate) async fn run(&self, call: Call, alive: Arc<Alive>) -> Returned {
        let handler = Arc::clone(&call.handler);
        let span = tracing::info_span!(
            target: "kopf.handlers",
            "handler",
            id = &*handler.id,
            attempt = call.attempt.retry.saturating_add(1),
        );
        let acts = acts(&call.occasion);
        let running = self.run_prepared(&handler, call, alive).instrument(span);
        if !acts {
            return running.await;
        }
        if !self.tenure.is_open() {
            return Err(HandlerError::Cancelled);
        }
        // Another replica may start soon: everything that can be stopped is stopped now.
        let running = async {
            match self.tenure.is_shared() {
                true => kopf_client::within_fence(&self.tenure.fence(), running).await,
                false => running.await,
            }
        };
        tokio::select! {
            biased;
            returned = running => returned,
            () = self.tenure.closed() => Err(HandlerError::Cancelled),
        }
    }

    async fn run_prepared(&self, handler: &Handler, call: Call, alive: Arc<Alive>) -> Returned {
        let source = LineSource::of(&call);
        let prepared = std::panic::catch_unwind(AssertUnwindSafe(|| {
            handler.invoke.invoke_guarded(call, Arc::clone(&alive))
        }));
        match prepared {
            Ok(Invocation::Future(future)) => {
                let watched = Watched { future, id: &handler.id };
                match AssertUnwindSafe(within(source, watched)).catch_unwind().await {
                    Ok(returned) => returned,
                    Err(panic) => Err(panicked(panic.as_ref())),
                }
            }
            Ok(Invocation::Blocking(function)) => {
                let function = Box::new(|| within_blocking(source, function));
                Box::pin(self.run_blocking(&handler.id, function, alive)).await
            }
            Err(panic) => Err(panicked(panic.as_ref())),
        }
    }

    async fn run_blocking(
        &self,
        id: &str,
        function: Box<dyn FnOnce() -> Returned + Send>,
        alive: Arc<Alive>,
    ) -> Returned {
        let seats = Arc::clone(&self.seats);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting_guard = WaitGuard(&self.waiting);
        let waiting = seats.acquire_owned();
        tokio::pin!(waiting);
        let seat = match tokio::time::timeout(POOL_PATIENCE, &mut waiting).await {
            Ok(seat) => seat,
            Err(_) => {
                tracing::warn!(
                    handler = id,
                    size = self.size.load(Ordering::Relaxed),
                    waiting = self.waiting(),
                    "all threads for blocking handlers are busy; raise execution.max_workers"
                );
                waiting.await
            }
        };
        drop(waiting_guard);
        let seat = seat.expect("the pool is never closed");
        // Threads of the pool know neither the subscriber of this task nor its span.
        let dispatch = tracing::dispatcher::get_default(tracing::Dispatch::clone);
        let span = tracing::Span::current();
        let function = kopf_client::carry_fence(kopf_client::carry_login(function));
        let excess = Arc::clone(&self.excess);
        let running = tokio::task::spawn_blocking(move || {
            let returned = tracing::dispatcher::with_default(&dispatch, || span.in_scope(function));
            drop(alive);
            match take_one(&excess) {
                true => seat.forget(),
                false => drop(seat),
            }
            returned
        });
        match running.await {
            Ok(returned) => returned,
            Err(error) if error.is_panic() => Err(panicked(error.into_panic().as_ref())),
            Err(_) => Err(HandlerError::Cancelled),
        }
    }
}

/// The future of a handler, which logs the handler if a poll takes too long.
struct Watched<'a> {
    future: BoxFuture<Returned>,
    id: &'a str,
}

impl Future for Watched<'_> {
    type Output = Returned;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Returned> {
        let begun = Instant::now();
        let polled = self.future.as_mut().poll(context);
        let took = begun.elapsed();
        if took >= SLOW_POLL {
            tracing::warn!(
                target: SLOW_POLLS,
                handler = self.id,
                ?took,
                "the handler blocks the event loop; use a blocking handler for such work"
            );
        }
        polled
    }
}

/// Whether a call may change anything: such calls are only for the leading replica.
fn acts(occasion: &Occasion) -> bool {
    match occasion {
        Occasion::Event { .. }
        | Occasion::Change(_)
        | Occasion::Desired
        | Occasion::Background { .. } => true,
        Occasion::Index | Occasion::Admission(_) | Occasion::Conversion | Occasion::Activity(_) => {
            false
        }
    }
}

/// Drops a user value; a panic in its `Drop` is logged and not propagated.
pub(crate) fn dismiss<T>(value: T) {
    if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(value))) {
        let panic = panic_text(panic.as_ref());
        tracing::error!(panic, "a memo value panicked while it was dropped");
    }
}

/// Decrements, if the count is not zero.
fn take_one(count: &AtomicUsize) -> bool {
    let less = |count: usize| count.checked_sub(1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> HandlerError {
    let text = panic_text(panic);
    HandlerError::Arbitrary { message: format!("the handler panicked: {text}"), details: None }
}
