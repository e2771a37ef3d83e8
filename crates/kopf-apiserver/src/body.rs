//! The body of every response: bytes, or a stream of watch lines.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use http_body::{Frame, SizeHint};

/// How much of a large body is passed on at once; the rest stays where it is counted.
const SLICE: usize = 64 << 10;

/// The body of a response.
pub struct Body {
    kind: Kind,
    is_watch: bool,
    // Dropped together with the body.
    held: Option<Box<dyn Hold>>,
}

/// What a body keeps until it is sent or dropped.
pub(crate) trait Hold: Send {
    /// The client takes a part of the body. With HTTP/2, this happens only if its window allows it.
    fn taken(&self);
}

enum Kind {
    Full(Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// A body of known bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Full(bytes.into()), is_watch: false, held: None }
    }

    /// A body that ends with its watch.
    pub(crate) fn watch(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { is_watch: true, ..Self::stream(stream) }
    }

    /// A body that is generated while it is sent.
    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { kind: Kind::Stream(Box::pin(stream)), is_watch: false, held: None }
    }

    /// Whether this is the body of a watch.
    pub(crate) fn is_watch(&self) -> bool {
        self.is_watch
    }

    /// The number of bytes that are waiting to be sent.
    pub(crate) fn waiting_bytes(&self) -> usize {
        match &self.kind {
            Kind::Full(bytes) => bytes.len(),
            Kind::Stream(_) => 0,
        }
    }

    /// Keeps a guard until the body is sent or dropped, instead of the one before.
    pub(crate) fn hold(&mut self, guard: impl Hold + 'static) {
        self.held = Some(Box::new(guard));
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let Some(held) = &this.held {
            held.taken();
        }
        match &mut this.kind {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => {
                let slice = bytes.split_to(bytes.len().min(SLICE));
                Poll::Ready(Some(Ok(Frame::data(slice))))
            }
            Kind::Stream(stream) => stream
                .as_mut()
                .poll_next(context)
                .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Full(bytes) => formatter.debug_tuple("Full").field(bytes).finish(),
            Kind::Stream(_) => formatter.write_str("Stream"),
        }
    }
}
