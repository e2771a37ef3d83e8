//! Responses to the pages: JSON, or an error.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use kopf_client::{Failure, LoginError, RequestError};
use serde::Serialize;
use serde_json::{Value, json};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The request is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The action is not allowed here.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The cluster rejected the request.
    #[error("the cluster refused: {}", .0.report())]
    Cluster(#[from] RequestError),
    /// The cluster rejected the request, in the words of the client.
    #[error("the cluster refused: {0}")]
    Client(#[from] kube::Error),
    /// There are no credentials for the cluster.
    #[error("no login: {0}")]
    Login(#[from] LoginError),
    /// A saved state could not be restored.
    #[error("the snapshot could not be restored: {0}")]
    Restore(String),
}

/// The result of a request.
pub(crate) type ApiResult = Result<Value, ApiError>;

impl ApiError {
    fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Cluster(error) if error.failure == Failure::NotFound => StatusCode::NOT_FOUND,
            Self::Client(kube::Error::Api(status)) if status.code == 404 => StatusCode::NOT_FOUND,
            Self::Cluster(_) | Self::Client(_) | Self::Login(_) | Self::Restore(_) => {
                StatusCode::BAD_GATEWAY
            }
        }
    }
}

/// The HTTP response for a result.
pub(crate) fn response(answered: ApiResult) -> Response<Full<Bytes>> {
    match answered {
        Ok(value) => json_response(StatusCode::OK, &value),
        Err(refused) => json_response(refused.status(), &json!({"error": refused.to_string()})),
    }
}

/// A JSON response that browsers do not cache.
pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(value.to_string())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

/// Converts values to JSON.
pub(crate) fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("plain values are always written")
}
