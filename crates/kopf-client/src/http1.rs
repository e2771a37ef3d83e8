//! One HTTP/1.1 connection to a server: one request at a time, without a task of its own.
//!
//! The caller that waits for a response writes and reads the socket. The connections of `hyper` are
//! tasks, which get requests and return bodies through channels: a write of an object took two more
//! wake-ups and twenty more allocations. Knows neither where connections come from nor what requests
//! mean; see `pool`.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, ReadBuf};

mod body;
mod head;

pub(crate) use body::Framing;
pub(crate) use head::{Head, Message, headers_text};

/// How many bytes are read at once: at first, and at most, while a long body arrives.
const READ_MIN: usize = 8 * 1024;
const READ_MAX: usize = 64 * 1024;

/// A stream of bytes of any kind, so that the code on top of it is compiled once.
pub(crate) type Stream = Box<dyn ByteStream>;

pub(crate) trait ByteStream: hyper::rt::Read + hyper::rt::Write + Send + Unpin {}

impl<T: hyper::rt::Read + hyper::rt::Write + Send + Unpin> ByteStream for T {}

/// A connection.
pub(crate) struct Connection {
    stream: TokioIo<Stream>,
    /// What was received, but not taken so far.
    received: BytesMut,
    /// How many bytes are read next.
    read_size: usize,
    /// Whether another request may follow.
    is_lasting: bool,
}

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the connection was closed before the response was complete")]
    Closed,
    #[error("the connection broke")]
    Io(#[from] io::Error),
    #[error("the response is not valid HTTP: {0}")]
    Malformed(&'static str),
    #[error("the head of the response is not valid HTTP")]
    Head(#[from] httparse::Error),
}

/// A failure before the head of the response.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Broken,
    /// Whether nothing was sent, so that the request may be sent on another connection.
    pub(crate) is_unsent: bool,
}

/// The progress of sending a request.
struct Sending<'a> {
    message: &'a Message,
    sent: usize,
    is_flushed: bool,
    error: Option<io::Error>,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        let (stream, received) = (TokioIo::new(stream), BytesMut::new());
        Self { stream, received, read_size: READ_MIN, is_lasting: true }
    }

    /// Sends a request, and waits for the head of its response.
    pub(crate) async fn exchange(&mut self, message: &Message) -> Result<Head, Failed> {
        let mut sending = Sending { message, sent: 0, is_flushed: false, error: None };
        let head = poll_fn(|context| self.poll_exchange(&mut sending, context)).await;
        head.map_err(|error| Failed { error, is_unsent: sending.sent == 0 })
    }

    /// A server may respond before it has read the whole request, for example if it is too large; it
    /// must not wait for us to read this.
    fn poll_exchange(
        &mut self,
        sending: &mut Sending<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, Broken>> {
        sending.poll(&mut self.stream, context);
        loop {
            if sending.error.is_some() && sending.sent == 0 {
                return Poll::Ready(Err(sending.failure()));
            }
            if let Some(head) = head::take(&mut self.received, sending.message)? {
                self.is_lasting = head.is_lasting && sending.is_flushed;
                return Poll::Ready(Ok(head));
            }
            match self.poll_receive(context) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(sending.failure())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending if sending.error.is_some() => {
                    return Poll::Ready(Err(sending.failure()));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The next part of a body; `None` at its end.
    pub(crate) fn poll_body(
        &mut self,
        framing: &mut Framing,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            if let Some(part) = framing.take(&mut self.received)? {
                return Poll::Ready(Some(Ok(part)));
            }
            if framing.is_over() {
                return Poll::Ready(None);
            }
            match self.poll_receive(context) {
                Poll::Ready(Ok(0)) => {
                    self.is_lasting = false;
                    return Poll::Ready(framing.close().err().map(Err));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Receives some bytes; none at the end of the stream.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.received.capacity() - self.received.len() < self.read_size / 2 {
            self.received.reserve(self.read_size);
        }
        let room = self.received.capacity() - self.received.len();
        let polled = pin!(self.stream.read_buf(&mut self.received)).poll(context);
        match &polled {
            Poll::Ready(Ok(count)) if *count == room && room >= self.read_size => {
                self.read_size = (self.read_size * 2).min(READ_MAX);
            }
            Poll::Pending => self.shrink(),
            Poll::Ready(_) => {}
        }
        polled
    }

    /// Gives back a large buffer when nothing is in it.
    fn shrink(&mut self) {
        if self.read_size > READ_MIN && self.received.is_empty() {
            (self.received, self.read_size) = (BytesMut::new(), READ_MIN);
        }
    }

    /// Whether another request may follow after the end of a response.
    pub(crate) fn recycle(&mut self) -> bool {
        self.shrink();
        self.is_lasting && self.received.is_empty()
    }

    /// Whether an idle connection is still open: the server has neither closed it nor sent anything.
    pub(crate) fn is_open(&mut self) -> bool {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(&mut self.stream)
            .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
            .is_pending()
    }
}

impl Sending<'_> {
    /// Sends as much as possible.
    fn poll(&mut self, stream: &mut TokioIo<Stream>, context: &mut Context<'_>) {
        while self.error.is_none() {
            let Message { head, body, .. } = self.message;
            let (head_left, body_left) = match self.sent.checked_sub(head.len()) {
                None => (&head[self.sent..], &body[..]),
                Some(sent) => (&[][..], &body[sent..]),
            };
            let stream = Pin::new(&mut *stream);
            if head_left.is_empty() && body_left.is_empty() {
                if self.is_flushed {
                    return;
                }
                match stream.poll_flush(context) {
                    Poll::Pending => return,
                    Poll::Ready(Ok(())) => self.is_flushed = true,
                    Poll::Ready(Err(error)) => self.error = Some(error),
                }
                continue;
            }
            let parts = [IoSlice::new(head_left), IoSlice::new(body_left)];
            match stream.poll_write_vectored(context, &parts) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.sent += count,
                Poll::Ready(Err(error)) => self.error = Some(error),
            }
        }
    }

    /// Why there is no response.
    fn failure(&mut self) -> Broken {
        self.error.take().map_or(Broken::Closed, Broken::Io)
    }
}

#[cfg(test)]
mod tests;
