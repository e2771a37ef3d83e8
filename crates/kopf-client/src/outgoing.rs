//! A request of ours to the cluster, before it is sent.
//!
//! It knows its path, headers and body, but neither the server nor the credentials.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, header};
use kube::client::Body;

use crate::error::{Failure, RequestError};
use crate::http1::Message;

/// A request before it is sent; may be sent several times.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
}

impl Outgoing {
    pub(crate) fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            content_type: None,
            accept: "application/json",
            body: Bytes::new(),
        }
    }

    /// Whether it changes anything.
    pub(crate) fn changes(&self) -> bool {
        self.method != Method::GET && !self.path.contains("dryRun=All")
    }

    /// Fails if the path cannot be sent as it is.
    pub(crate) fn check(&self) -> Result<(), RequestError> {
        // All visible characters of ASCII except `"`, `#`, `<`, `>` and the backtick.
        let is_usual = |byte| matches!(byte, b'!' | b'$'..=b';' | b'=' | b'?'..=b'_' | b'a'..=b'~');
        if self.path.starts_with('/') && self.path.bytes().all(is_usual) {
            return Ok(());
        }
        let message = "the request is malformed: its path is invalid".to_owned();
        Err(RequestError::local(Failure::Malformed, &self.method, &self.path, message))
    }

    /// Its own headers.
    fn headers(&self) -> impl Iterator<Item = (HeaderName, &'static str)> {
        let agent = concat!("kopf/", env!("CARGO_PKG_VERSION"));
        let content_type = self.content_type.map(|it| (header::CONTENT_TYPE, it));
        [(header::ACCEPT, self.accept), (header::USER_AGENT, agent)].into_iter().chain(content_type)
    }

    /// Writes its own headers.
    pub(crate) fn write_headers(&self, message: &mut Message) {
        for (name, value) in self.headers() {
            message.push(name.as_str(), value.as_bytes());
        }
    }

    /// The same request for a client created elsewhere.
    pub(crate) fn to_request(&self) -> Result<Request<Body>, http::Error> {
        let mut builder = Request::builder().method(self.method.clone()).uri(&self.path);
        for (name, value) in self.headers() {
            builder = builder.header(name, HeaderValue::from_static(value));
        }
        builder.body(Body::from(self.body.clone()))
    }
}

#[cfg(test)]
mod tests;
