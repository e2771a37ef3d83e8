//! The transport between an operator and its server: one per life of the operator.
//!
//! It passes all requests on, except those that the test disturbs. After the operator is killed, its
//! transport stays closed, so that tasks of the killed operator cannot reach the server.

mod distorted;

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kopf_apiserver::Service;
use kopf_engine::ReviewGate;
use kube::client::Body;
use tokio::sync::watch;
use tower::Service as _;

use self::distorted::{AnyBody, distorted};
use crate::disturbances::{Act, Asked, Disturbances};

/// The connection of one life to the server.
#[derive(Clone)]
pub(crate) struct Transport {
    service: Service,
    disturbances: Option<Arc<Disturbances>>,
    is_shut: Arc<watch::Sender<bool>>,
    /// The reverse direction: reviews from the server to the operator.
    reviews: Option<ReviewGate>,
}

impl Transport {
    pub(crate) fn new(service: Service, disturbances: Option<Arc<Disturbances>>) -> Self {
        Self { service, disturbances, is_shut: Arc::new(watch::Sender::new(false)), reviews: None }
    }

    /// Sets the gate of an operator that handles reviews.
    pub(crate) fn with_reviews(self, gate: ReviewGate) -> Self {
        Self { reviews: Some(gate), ..self }
    }

    /// Resolves when the server knows where to send reviews, or if there are none.
    pub(crate) async fn is_asked(&self) {
        let Some(reviews) = &self.reviews else { return };
        tokio::select! {
            () = reviews.settled() => {}
            () = self.killed() => {}
        }
    }

    /// Whether this life has ended.
    pub(crate) fn is_shut(&self) -> bool {
        *self.is_shut.borrow()
    }

    /// Ends the access of this life to the server.
    pub(crate) fn kill(&self) {
        self.is_shut.send_replace(true);
    }

    /// Resolves when the life has ended.
    pub(crate) async fn killed(&self) {
        let mut is_shut = self.is_shut.subscribe();
        // We hold the sender, so only a kill ends this.
        let _ = is_shut.wait_for(|is_shut| *is_shut).await;
    }

    async fn answer(mut self, request: Request<Body>) -> std::io::Result<Response<AnyBody>> {
        if *self.is_shut.borrow() {
            return std::future::pending().await;
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        let asked = Asked::new(&parts.method, &parts.uri);
        let act =
            self.disturbances.as_ref().map_or(Act::Pass, |disturbances| disturbances.act(&asked));
        let request = Request::from_parts(parts, Full::new(body));
        match act {
            Act::Crash { is_taken } => {
                if is_taken {
                    self.pass(request).await;
                }
                self.kill();
                std::future::pending().await
            }
            Act::Refuse { code, is_taken } => {
                if is_taken {
                    self.pass(request).await;
                }
                Ok(refusal(code))
            }
            Act::Break { is_taken } => {
                if is_taken {
                    self.pass(request).await;
                }
                Err(std::io::Error::other("the connection is broken by the test"))
            }
            Act::Late(latency) => {
                tokio::time::sleep(latency).await;
                self.pass_and_remember(request, &asked).await
            }
            Act::Stale(answer) => Ok(full(StatusCode::OK, answer)),
            Act::Distort(distortion) => {
                let response = self.pass(request).await;
                Ok(response.map(|body| distorted(body, distortion)))
            }
            Act::Pass => self.pass_and_remember(request, &asked).await,
        }
    }

    /// Passes a request on; remembers lists, which may be needed as outdated responses.
    async fn pass_and_remember(
        &mut self,
        request: Request<Full<Bytes>>,
        asked: &Asked,
    ) -> std::io::Result<Response<AnyBody>> {
        let response = self.pass(request).await;
        let Some(disturbances) = self.disturbances.as_ref().filter(|_| asked.is_list()) else {
            return Ok(response);
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        if parts.status.is_success() && !*self.is_shut.borrow() {
            disturbances.remember(asked, &body);
        }
        let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
        Ok(Response::from_parts(parts, body))
    }

    async fn pass(&mut self, request: Request<Full<Bytes>>) -> Response<AnyBody> {
        let response = match self.service.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        response.map(|body| body.map_err(|never| match never {}).boxed_unsync())
    }
}

impl tower::Service<Request<Body>> for Transport {
    type Response = Response<AnyBody>;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, std::io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

fn refusal(code: StatusCode) -> Response<AnyBody> {
    let status = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code.as_u16(),
        "reason": code.canonical_reason().unwrap_or_default().replace(' ', ""),
        "message": "refused by the test",
    });
    full(code, Bytes::from(status.to_string()))
}

fn full(code: StatusCode, body: Bytes) -> Response<AnyBody> {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}
