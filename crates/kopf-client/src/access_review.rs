//! Asks the server who a caller is and what it may read: TokenReview and SubjectAccessReview.
//!
//! These requests store nothing, so they are neither limited nor fenced like writes.

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::{Failure, RequestError};
use crate::outgoing::Outgoing;

/// The path for token reviews.
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
/// The path for access reviews.
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A user known to the server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subject {
    /// The name of the user.
    pub username: String,
    /// The uid of the user.
    #[serde(default)]
    pub uid: String,
    /// The groups of the user.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Other data of the server about the user; passed back unchanged.
    #[serde(default)]
    pub extra: Value,
}

impl Subject {
    /// The owner of this token; `None` if the server does not accept it.
    ///
    /// # Errors
    /// Fails like the request, after the first attempt.
    pub async fn of_token(cluster: &Cluster, token: &str) -> Result<Option<Self>, RequestError> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        });
        let status = answered(cluster, TOKEN_REVIEWS, &review).await?;
        if status["authenticated"] != true {
            return Ok(None);
        }
        Ok(serde_json::from_value(status["user"].clone()).ok())
    }

    /// Whether the user may `get` a path that belongs to no resource, such as `/metrics`.
    ///
    /// # Errors
    /// Fails like the request, after the first attempt.
    pub async fn may_get(&self, cluster: &Cluster, path: &str) -> Result<bool, RequestError> {
        let mut review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": self.username,
                "uid": self.uid,
                "groups": self.groups,
                "nonResourceAttributes": {"path": path, "verb": "get"},
            },
        });
        if self.extra.is_object() {
            review["spec"]["extra"] = self.extra.clone();
        }
        let status = answered(cluster, ACCESS_REVIEWS, &review).await?;
        Ok(status["allowed"] == true && status["denied"] != true)
    }
}

/// The status of a completed review.
async fn answered(cluster: &Cluster, path: &str, review: &Value) -> Result<Value, RequestError> {
    let outgoing = Outgoing {
        method: Method::POST,
        content_type: Some("application/json"),
        body: Bytes::from(review.to_string()),
        ..Outgoing::get(path.to_owned())
    };
    let answer = cluster.unfenced().fetch_at_once(&outgoing).await?;
    let mut answer: Value = serde_json::from_slice(&answer).map_err(|error| {
        let text = "the answer is not a review".into();
        let mut failed = RequestError::local(Failure::Malformed, &outgoing.method, path, text);
        failed.source = Some(Box::new(error));
        failed
    })?;
    Ok(answer["status"].take())
}
