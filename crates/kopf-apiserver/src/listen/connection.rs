//! One connection: tracks its activity and decides when to close it.
//!
//! A connection is closed if no request arrives for a while, or if a response remains unread: because
//! the client takes no bytes, or because its HTTP/2 windows allow none. Watches may be idle for as
//! long as they last.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::answer::error_response;
use crate::body::{Body, Hold};
use crate::limits::{Room, Serving, ServingLimits};
use crate::service::Service;
use crate::{StatusError, websocket};

use super::completion::Completion;

/// The activity of one connection.
pub(super) struct Activity {
    // Changed by requests, responses and writes; locked only briefly.
    state: Mutex<State>,
}

struct State {
    /// Every request that is not a watch, oldest first.
    requests: Vec<Pending>,
    next: u64,
    watches: usize,
    /// The time of the last activity.
    touched: Instant,
    /// Since when the client has not accepted any data.
    blocked: Option<Instant>,
}

/// A request whose response has not been sent completely.
struct Pending {
    number: u64,
    since: Instant,
    /// When a part of the response was taken last, or when the response was ready.
    taken: Option<Instant>,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        let state = State {
            requests: Vec::new(),
            next: 0,
            watches: 0,
            touched: Instant::now(),
            blocked: None,
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn begin(self: &Arc<Self>) -> Guard {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.requests.push(Pending { number, since: Instant::now(), taken: None });
        Guard { activity: Arc::clone(self), number, is_watch: false }
    }

    fn note_write(&self, is_blocked: bool) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if is_blocked {
            state.blocked.get_or_insert(now);
        } else {
            state.blocked = None;
            state.touched = now;
        }
    }

    /// Resolves when the connection must be closed, with the reason.
    pub(super) async fn end(&self, limits: &ServingLimits) -> &'static str {
        loop {
            let (deadline, reason) = self.deadline(limits);
            if deadline <= Instant::now() {
                return reason;
            }
            // Activity in between only postpones the deadline, and a new deadline is at least this
            // far away.
            let soon = Instant::now() + limits.idle_time_max.min(limits.unread_time_max);
            tokio::time::sleep_until(deadline.min(soon)).await;
        }
    }

    fn deadline(&self, limits: &ServingLimits) -> (Instant, &'static str) {
        let state = self.state.lock();
        let ServingLimits { idle_time_max, unread_time_max, .. } = *limits;
        let whole = limits.body_time_max + limits.request_time_max + unread_time_max;
        let untaken = state.requests.iter().filter_map(|request| request.taken);
        let unread = state.blocked.into_iter().chain(untaken).min();
        let unread = unread.map(|since| (since + unread_time_max, "an answer is not read"));
        let first = state.requests.first();
        let slow = first.map(|request| (request.since + whole, "a request is slow"));
        let is_idle = state.requests.is_empty() && state.watches == 0;
        let idle = is_idle.then(|| (state.touched + idle_time_max, "there is no request"));
        let all = unread.into_iter().chain(slow).chain(idle);
        all.min_by_key(|(deadline, _)| *deadline).unwrap_or((Instant::now() + idle_time_max, ""))
    }
}

impl State {
    /// Forgets a request.
    fn end(&mut self, number: u64) {
        if let Ok(at) = self.place(number) {
            self.requests.remove(at);
        }
    }

    fn place(&self, number: u64) -> Result<usize, usize> {
        self.requests.binary_search_by_key(&number, |request| request.number)
    }
}

/// One request, until its response is passed on or dropped.
pub(crate) struct Guard {
    activity: Arc<Activity>,
    number: u64,
    is_watch: bool,
}

impl Guard {
    /// Marks the request as a watch, which may last.
    fn watch(mut self) -> Self {
        let mut state = self.activity.state.lock();
        state.end(self.number);
        state.watches += 1;
        drop(state);
        self.is_watch = true;
        self
    }
}

impl Hold for Guard {
    fn taken(&self) {
        if self.is_watch {
            return;
        }
        let mut state = self.activity.state.lock();
        if let Ok(at) = state.place(self.number) {
            state.requests[at].taken = Some(Instant::now());
        }
    }
}

impl Hold for (Guard, Option<Room>) {
    fn taken(&self) {
        self.0.taken();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        match self.is_watch {
            true => state.watches = state.watches.saturating_sub(1),
            false => state.end(self.number),
        }
        state.touched = Instant::now();
    }
}

/// The service of one connection.
#[derive(Clone)]
pub(super) struct Tracked {
    pub(super) service: Service,
    pub(super) serving: Arc<Serving>,
    pub(super) activity: Arc<Activity>,
    pub(super) switched: Arc<Switched>,
}

/// The watch of a connection that has been upgraded to a WebSocket.
// Set by the last request of the connection, taken when the connection has ended.
#[derive(Default)]
pub(super) struct Switched(Mutex<Option<(OnUpgrade, Body)>>);

impl Switched {
    /// Serves the watch, if there is one; it has the connection to itself.
    pub(super) async fn serve(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let Some((upgrade, body)) = self.0.lock().take() else { return Ok(()) };
        websocket::serve(TokioIo::new(upgrade.await?), body).await?;
        Ok(())
    }

    /// Turns the response of a watch into the WebSocket handshake.
    fn switch(
        &self,
        headers: &HeaderMap,
        upgrade: OnUpgrade,
        answer: Response<Body>,
    ) -> Response<Body> {
        match websocket::switch(headers) {
            Some(response) => {
                *self.0.lock() = Some((upgrade, answer.into_body()));
                response
            }
            None => error_response(&StatusError::bad_request("the WebSocket has no key")),
        }
    }
}

impl tower::Service<Request<Incoming>> for Tracked {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        let guard = self.activity.begin();
        let place = match self.serving.admit() {
            Ok(place) => place,
            Err(error) => return Box::pin(async move { Ok(error_response(&error)) }),
        };
        let limits = &self.serving.limits;
        let whole = match http_body::Body::is_end_stream(request.body()) {
            true => limits.request_time_max,
            false => limits.body_time_max + limits.request_time_max,
        };
        let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let upgrade = websocket::is_requested(request.headers())
            .then(|| (hyper::upgrade::on(&mut request), request.headers().clone()));
        let answer = self.service.call(request);
        let (serving, switched) = (Arc::clone(&self.serving), Arc::clone(&self.switched));
        Box::pin(async move {
            let answer = async {
                match is_write {
                    // A write that has started is completed even if its client disconnects.
                    true => Completion::new(answer).await.unwrap_or_else(|problem| {
                        Ok(error_response(&StatusError::internal(problem)))
                    }),
                    false => answer.await,
                }
            };
            let mut response = match tokio::time::timeout(whole, answer).await {
                Ok(Ok(response)) => response,
                Err(_) => error_response(&out_of_time()),
            };
            let guard = if response.body().is_watch() { guard.watch() } else { guard };
            drop(place);
            guard.taken();
            match serving.room_for_answer(response.body().waiting_bytes()) {
                Ok(room) => response.body_mut().hold((guard, room)),
                Err(error) => {
                    response = error_response(&error);
                    response.body_mut().hold(guard);
                }
            }
            if let Some((upgrade, headers)) = upgrade
                && response.body().is_watch()
            {
                response = switched.switch(&headers, upgrade, response);
            }
            Ok(response)
        })
    }
}

fn out_of_time() -> StatusError {
    let message = "Timeout: request did not complete within requested timeout - context deadline \
                   exceeded";
    StatusError::new(504, "Timeout", message).about("", "", "")
}

/// A stream that records writes.
pub(super) struct Watched<S> {
    pub(super) stream: S,
    pub(super) activity: Arc<Activity>,
}

impl<S> Watched<S> {
    fn note<T>(&self, outcome: Poll<T>) -> Poll<T> {
        self.activity.note_write(outcome.is_pending());
        outcome
    }
}

impl<S: Read + Unpin> Read for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.note(outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.note(outcome)
    }
}
