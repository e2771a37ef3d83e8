//! Changes of objects: patches, creations, deletions. Responses are raw objects.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use kopf_model::{Object, Resource};

use crate::address;
use crate::cluster::Cluster;
use crate::error::{Failure, RequestError};
use crate::limiter::Urgency;
use crate::outgoing::Outgoing;

/// Identifies an object.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its resource.
    pub resource: &'a Resource,
    /// Its namespace.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// The subresource, such as `status`.
    pub subresource: Option<&'a str>,
}

/// The content of a patch.
#[derive(Clone, Debug)]
pub enum PatchContent {
    /// A merge patch.
    Merge(Bytes),
    /// A list of JSON patch operations.
    Json(Bytes),
}

impl Cluster {
    /// Patches an object and returns its new state.
    ///
    /// # Errors
    /// Fails like the request, after the retries of the policy.
    pub async fn patch(
        &self,
        target: Target<'_>,
        content: PatchContent,
        urgency: Urgency,
    ) -> Result<Object, RequestError> {
        let (content_type, body) = match content {
            PatchContent::Merge(body) => ("application/merge-patch+json", body),
            PatchContent::Json(body) => ("application/json-patch+json", body),
        };
        let outgoing = Outgoing {
            method: Method::PATCH,
            content_type: Some(content_type),
            body,
            ..Outgoing::get(target.path())
        };
        let answer = self.write(&outgoing, urgency).await?;
        self.parse(&outgoing, answer)
    }

    /// Applies a manifest server-side, with force: all fields in it become ours.
    ///
    /// # Errors
    /// Fails like the request, after the retries of the policy.
    pub async fn apply(&self, target: Target<'_>, manifest: Bytes) -> Result<Object, RequestError> {
        self.apply_to(target.path(), manifest).await
    }

    /// Returns the result of applying without storing it.
    ///
    /// # Errors
    /// Fails if applying would fail.
    pub async fn rehearse(
        &self,
        target: Target<'_>,
        manifest: Bytes,
    ) -> Result<Object, RequestError> {
        let mut path = target.path();
        address::push_query(&mut path, "dryRun", "All");
        self.apply_to(path, manifest).await
    }

    async fn apply_to(&self, mut path: String, manifest: Bytes) -> Result<Object, RequestError> {
        let field_manager = self.field_manager();
        address::push_query(&mut path, "fieldManager", &field_manager);
        address::push_query(&mut path, "force", "true");
        let outgoing = Outgoing {
            method: Method::PATCH,
            // JSON is YAML, and all servers know this type.
            content_type: Some("application/apply-patch+yaml"),
            body: manifest,
            ..Outgoing::get(path)
        };
        let answer = self.write(&outgoing, Urgency::Normal).await?;
        self.parse(&outgoing, answer)
    }

    /// Deletes an object in the background, if it still has this uid.
    ///
    /// # Errors
    /// Fails like the request, after the retries of the policy; with a conflict for another uid.
    pub async fn delete(&self, target: Target<'_>, uid: &str) -> Result<(), RequestError> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        });
        let outgoing = Outgoing {
            method: Method::DELETE,
            content_type: Some("application/json"),
            body: Bytes::from(options.to_string()),
            ..Outgoing::get(target.path())
        };
        self.write(&outgoing, Urgency::Normal).await?;
        Ok(())
    }

    /// Creates an object in a collection.
    ///
    /// # Errors
    /// Fails like the request, after the retries of the policy.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        body: Bytes,
    ) -> Result<Object, RequestError> {
        let backoffs = self.error_backoffs();
        self.create_patiently(resource, namespace, body, &backoffs).await
    }

    /// Like [`create`](Self::create), with these pauses between the attempts.
    ///
    /// # Errors
    /// Fails like the request, after the retries.
    pub async fn create_patiently(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        body: Bytes,
        backoffs: &[Duration],
    ) -> Result<Object, RequestError> {
        let outgoing = Outgoing {
            method: Method::POST,
            content_type: Some("application/json"),
            body,
            ..Outgoing::get(address::collection(resource, namespace))
        };
        let answer = self.write_patiently(&outgoing, backoffs).await?;
        self.parse(&outgoing, answer)
    }

    /// Reads one object.
    ///
    /// # Errors
    /// Fails like the request, after the retries of the policy.
    pub async fn get(&self, target: Target<'_>) -> Result<Object, RequestError> {
        let outgoing = Outgoing::get(target.path());
        let answer = self.fetch(&outgoing).await?;
        self.parse(&outgoing, answer)
    }
}

impl Cluster {
    fn parse(&self, outgoing: &Outgoing, answer: Bytes) -> Result<Object, RequestError> {
        self.object(answer).map_err(|error| {
            let mut failed = RequestError::local(
                Failure::Malformed,
                &outgoing.method,
                &outgoing.path,
                "the answer is not an object".into(),
            );
            failed.source = Some(Box::new(error));
            failed
        })
    }
}

impl Target<'_> {
    fn path(&self) -> String {
        address::object(self.resource, self.namespace, self.name, self.subresource)
    }
}
