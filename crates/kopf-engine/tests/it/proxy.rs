//! A proxy between the engine and the server that records all requests and breaks some.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kopf_apiserver::Service;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;

use crate::chaos::{self, Chaos, RequestFault};
use tower::Service as _;

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
    pub(crate) code: u16,
}

/// What to do with matching requests.
#[derive(Clone)]
pub(crate) struct Rule {
    pub(crate) method: Option<Method>,
    /// A part of the path with the query.
    pub(crate) path: &'static str,
    /// Whether it is for watches only (true), for anything but watches (false), or for all.
    pub(crate) watches: Option<bool>,
    pub(crate) times: usize,
    pub(crate) fault: Fault,
}

#[derive(Clone)]
pub(crate) enum Fault {
    /// Respond with this code instead of asking the server.
    Answer(u16, Option<u64>),
    /// Ask the server, but respond with this code.
    AnswerAfter(u16),
    /// A watch that sends nothing at all.
    Silence,
    /// A watch that sends this many events, and loses all others.
    LoseAfter(usize),
    /// A watch that omits the first event with this text, and continues normally.
    Lose(&'static str),
    /// A watch that sends this, and ends.
    End(&'static str),
    /// A watch in which every event is delayed by this time.
    Late(Duration),
    /// A watch that sends every event twice.
    Double,
    /// A watch in which the later of two events comes first.
    Swap,
    /// Respond with success, but change nothing.
    Ignore,
    /// No response at all.
    Hang,
    /// The connection breaks.
    Break,
    /// The server processes it, and then the connection breaks.
    BreakAfter,
}

impl Fault {
    /// Applies the fault to the events of a watch.
    fn distort(self, body: AnyBody) -> AnyBody {
        match self {
            Self::Silence => chaos::thin(body, |_| false),
            Self::LoseAfter(count) => {
                let mut told = 0;
                chaos::thin(body, move |_| {
                    told += 1;
                    told <= count
                })
            }
            Self::Lose(text) => {
                let mut is_lost = false;
                chaos::thin(body, move |line| {
                    let is_it = !is_lost && line.contains(text);
                    is_lost |= is_it;
                    !is_it
                })
            }
            Self::End(text) => whole(text),
            Self::Late(time) => chaos::delay(body, time),
            Self::Swap => chaos::swap(body),
            Self::Double => Doubled(body).boxed_unsync(),
            Self::Answer(..)
            | Self::AnswerAfter(_)
            | Self::Ignore
            | Self::Hang
            | Self::Break
            | Self::BreakAfter => body,
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    requests: Vec<Recorded>,
    rules: VecDeque<Rule>,
    /// How many requests are left until the engine is killed, and whether the last one is
    /// processed.
    kill: Option<(usize, bool)>,
    is_killed: bool,
    /// Whether the further pages of lists must wait.
    holds_pages: bool,
    /// Whether random faults occur; see [`crate::chaos`].
    chaos: Option<Chaos>,
    /// The server that responds instead of the first one.
    successor: Option<Service>,
}

#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) service: Service,
    pub(crate) journal: Journal,
}

pub(crate) type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

impl Journal {
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.0.lock().requests.clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().requests.clear();
    }

    pub(crate) fn add_rule(&self, rule: Rule) {
        self.0.lock().rules.push_back(rule);
    }

    /// Everything works from now on.
    pub(crate) fn clear_rules(&self) {
        self.0.lock().rules.clear();
    }

    /// From the n-th request on there is no response; the n-th one is processed by the server or
    /// not.
    pub(crate) fn kill_at(&self, number: usize, is_taken: bool) {
        self.0.lock().kill = Some((number, is_taken));
    }

    /// Makes the further pages of lists wait, or continue.
    pub(crate) fn hold_pages(&self, is_held: bool) {
        self.0.lock().holds_pages = is_held;
    }

    /// From now on another server responds, such as the first one after a restore.
    pub(crate) fn hand_over(&self, successor: Service) {
        self.0.lock().successor = Some(successor);
    }

    /// From now on random faults occur.
    pub(crate) fn set_chaos(&self, chaos: Option<Chaos>) {
        self.0.lock().chaos = chaos;
    }

    fn request_fault(&self, is_watch: bool) -> Option<RequestFault> {
        let mut inner = self.0.lock();
        let request_fault = inner.chaos.as_mut()?.next_fault(is_watch);
        if request_fault.is_deadly && inner.kill.is_none() {
            inner.kill = Some((0, request_fault.is_taken));
        }
        Some(request_fault)
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.0.lock().is_killed
    }

    /// Responds again, to a new engine.
    pub(crate) fn revive(&self) {
        let mut inner = self.0.lock();
        inner.kill = None;
        inner.is_killed = false;
    }

    /// Whether this request gets no response, and if so, whether the server processes it.
    fn is_last(&self) -> Option<bool> {
        let mut inner = self.0.lock();
        if inner.is_killed {
            return Some(false);
        }
        let (left, is_taken) = inner.kill?;
        if left > 0 {
            inner.kill = Some((left - 1, is_taken));
            return None;
        }
        inner.is_killed = true;
        Some(is_taken)
    }

    fn fault(&self, method: &Method, path: &str, is_watch: bool) -> Option<Fault> {
        let mut inner = self.0.lock();
        let rule = inner.rules.iter_mut().find(|rule| {
            rule.times > 0
                && rule.method.as_ref().is_none_or(|wanted| wanted == method)
                && path.contains(rule.path)
                && rule.watches.is_none_or(|wanted| wanted == is_watch)
        })?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }
}

impl tower::Service<Request<Body>> for Proxy {
    type Response = Response<AnyBody>;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { proxy.answer(request).await })
    }
}

impl Proxy {
    async fn answer(mut self, request: Request<Body>) -> Result<Response<AnyBody>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        let path = parts.uri.path().to_owned();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=true");
        let asked = format!("{path}?{query}");
        let fault = self.journal.fault(&parts.method, &asked, is_watch);
        let request_fault = self.journal.request_fault(is_watch).unwrap_or_default();
        while query.contains("continue=") && self.journal.0.lock().holds_pages {
            tokio::time::sleep(MOMENT).await;
        }
        tokio::time::sleep(request_fault.delay_before).await;
        if let Some(is_taken) = self.journal.is_last() {
            if is_taken {
                let request = Request::from_parts(parts, Full::new(body));
                self.service.call(request).await.expect("infallible");
            }
            return std::future::pending().await;
        }
        let mut recorded = Recorded {
            method: parts.method.clone(),
            path,
            query,
            content_type: content_type(&parts.headers),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            code: 0,
        };
        let fault = request_fault.fault.or(fault);
        if let Some(Fault::Hang) = fault {
            return std::future::pending().await;
        }
        if let Some(Fault::Break) = fault {
            self.journal.0.lock().requests.push(recorded);
            return Err(std::io::Error::other("the connection is broken by the test"));
        }
        if let Some(Fault::Answer(code, retry_after)) = fault {
            recorded.code = code;
            self.journal.0.lock().requests.push(recorded);
            return Ok(failure(code, retry_after));
        }
        if let Some(successor) = self.journal.0.lock().successor.clone() {
            self.service = successor;
        }
        let mut request = Request::from_parts(parts, Full::new(body));
        if let Some(Fault::Ignore) = fault {
            *request.method_mut() = Method::GET;
        }
        let response = self.service.call(request).await.expect("infallible");
        recorded.code = response.status().as_u16();
        tokio::time::sleep(request_fault.delay_after).await;
        if let Some(Fault::BreakAfter) = fault {
            self.journal.0.lock().requests.push(recorded);
            return Err(std::io::Error::other("the connection is broken by the test"));
        }
        if let Some(Fault::AnswerAfter(code)) = fault {
            recorded.code = code;
            self.journal.0.lock().requests.push(recorded);
            return Ok(failure(code, None));
        }
        self.journal.0.lock().requests.push(recorded);
        let (parts, body) = response.into_parts();
        let body = body.map_err(|never| match never {}).boxed_unsync();
        let body = match (fault, request_fault.stream) {
            (Some(fault), _) => fault.distort(body),
            (None, Some(random)) => chaos::distort(body, random),
            (None, None) => body,
        };
        Ok(Response::from_parts(parts, body))
    }
}

fn content_type(headers: &http::HeaderMap) -> String {
    let value = headers.get("content-type").and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// A watch stream that repeats every event.
struct Doubled(AnyBody);

impl http_body::Body for Doubled {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        Pin::new(&mut self.0)
            .poll_frame(context)
            .map(|frame| frame.map(|frame| Ok(frame?.map_data(|data| data.repeat(2).into()))))
    }
}

fn failure(code: u16, retry_after: Option<u64>) -> Response<AnyBody> {
    let status = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "message": "broken by the test",
        "reason": if code == 410 { "Expired" } else { "Test" },
    });
    let mut builder = Response::builder().status(code);
    if let Some(seconds) = retry_after {
        builder = builder.header("retry-after", seconds.to_string());
    }
    builder.body(whole(status.to_string())).expect("a valid response")
}

fn whole(text: impl Into<Bytes>) -> AnyBody {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The shortest useful time on the controlled clock.
pub(crate) const MOMENT: Duration = Duration::from_millis(5);
