//! The state and the deadline of one connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kopf_core::settings::Serving;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

/// A client that has not sent a complete head after this time is suspicious.
const HEAD_GRACE: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between two requests.
    Idle,
    /// In the TLS handshake.
    Handshake,
    /// Before the end of a request's head.
    Head,
    /// Before the end of a request's body.
    Body,
    /// Before the end of the response.
    Writing,
    /// Waiting for our response.
    Responding,
    /// Closed in favour of another one.
    Closed,
}

/// One connection, as seen by the others.
pub(super) struct Connection {
    pub(super) id: u64,
    pub(super) port: u64,
    state: Mutex<State>,
    /// Wakes the task of the connection when the deadline changes.
    changed: Notify,
    is_body_read: AtomicBool,
}

struct State {
    phase: Phase,
    since: Instant,
    deadline: Option<Instant>,
    /// The bytes held in memory for the current request.
    held: Option<OwnedSemaphorePermit>,
}

impl Connection {
    pub(super) fn new(id: u64, port: u64, phase: Phase, timeout: Duration) -> Self {
        let since = Instant::now();
        let deadline = since.checked_add(timeout);
        let state = State { phase, since, deadline, held: None };
        Self {
            id,
            port,
            state: Mutex::new(state),
            changed: Notify::new(),
            is_body_read: AtomicBool::new(false),
        }
    }

    /// Starts a phase with a deadline.
    pub(super) fn enter(&self, phase: Phase, timeout: Duration) {
        self.change(phase, Instant::now().checked_add(timeout));
    }

    /// Starts a phase whose duration depends on us.
    pub(super) fn enter_unbounded(&self, phase: Phase) {
        self.change(phase, None);
    }

    fn change(&self, phase: Phase, deadline: Option<Instant>) {
        let mut state = self.state.lock();
        if state.phase == Phase::Closed {
            return;
        }
        if phase == Phase::Idle {
            state.held = None;
            self.is_body_read.store(false, Ordering::Relaxed);
        }
        state.phase = phase;
        state.since = Instant::now();
        state.deadline = deadline;
        self.changed.notify_one();
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// Ends the connection.
    pub(super) fn close(&self) {
        self.change(Phase::Closed, Some(Instant::now()));
    }

    /// The order in which connections are closed for others, the smallest first; `None` for those
    /// that are being served.
    pub(super) fn expendability(&self) -> Option<(u8, Instant)> {
        let state = self.state.lock();
        let rank = match state.phase {
            Phase::Handshake | Phase::Head if state.since.elapsed() > HEAD_GRACE => 0,
            Phase::Idle => 1,
            Phase::Handshake | Phase::Head => 2,
            Phase::Body => 3,
            Phase::Writing => 4,
            Phase::Responding | Phase::Closed => return None,
        };
        Some((rank, state.since))
    }

    /// The bytes held in memory for the current request.
    pub(super) fn held(&self) -> usize {
        self.state.lock().held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Holds more bytes, until the response is written.
    pub(super) fn hold(&self, permit: OwnedSemaphorePermit) {
        let mut state = self.state.lock();
        match &mut state.held {
            Some(held) => held.merge(permit),
            None => state.held = Some(permit),
        }
    }

    /// Holds only this many bytes from now on.
    pub(super) fn shrink(&self, bytes: usize) {
        let mut state = self.state.lock();
        if let Some(held) = &mut state.held {
            let excess = held.num_permits().saturating_sub(bytes);
            drop(held.split(excess));
        }
    }

    pub(super) fn set_body_read(&self) {
        self.is_body_read.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_body_read(&self) -> bool {
        self.is_body_read.load(Ordering::Relaxed)
    }

    /// Runs the connection until it ends, misses a deadline, or is closed for another one.
    pub(super) async fn within_deadlines(&self, serving: impl Future<Output = ()>) {
        tokio::pin!(serving);
        loop {
            let deadline = self.state.lock().deadline;
            let overdue = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut serving => return,
                () = self.changed.notified() => {
                    if self.phase() == Phase::Closed {
                        return;
                    }
                }
                () = overdue => return,
            }
        }
    }
}

/// A stream that notifies its connection when a request starts and when a response is written.
pub(super) struct Watched<'a, S> {
    stream: S,
    connection: &'a Arc<Connection>,
    settings: &'a Serving,
}

impl<'a, S> Watched<'a, S> {
    pub(super) fn new(stream: S, connection: &'a Arc<Connection>, settings: &'a Serving) -> Self {
        Self { stream, connection, settings }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before && self.connection.phase() == Phase::Idle {
            self.connection.enter(Phase::Head, self.settings.head_timeout);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // The library flushes when it has written everything.
        if self.connection.phase() == Phase::Writing {
            self.connection.enter(Phase::Idle, self.settings.idle_timeout);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
