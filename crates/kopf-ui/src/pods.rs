//! Actions on the objects of an embedded cluster: change the stage of Pods, delete objects.

use bytes::Bytes;
use kopf_apiserver::Stage;
use kopf_client::{PatchContent, Urgency};
use serde_json::{Value, json};

use crate::children::{collection_path, resource_of, target};
use crate::request::PageRequest;
use crate::response::{ApiError, ApiResult};
use crate::shared::Shared;

/// The annotation with the stage of a Pod in the embedded server.
const STAGE: &str = "kopf.dev/stage";
/// The error for other clusters.
const ONLY_EMBEDDED: &str = "only embedded clusters are controlled here";

/// Rejects clusters that are not embedded.
pub(crate) fn check_embedded(shared: &Shared) -> Result<&kopf_apiserver::Server, ApiError> {
    shared.embedded.as_ref().ok_or(ApiError::Forbidden(ONLY_EMBEDDED))
}

/// Sets the stage of a Pod; an empty one resets it.
pub(crate) async fn stage(shared: &Shared, request: &PageRequest) -> ApiResult {
    check_embedded(shared)?;
    let (namespace, name) = (request.name("namespace")?, request.name("name")?);
    let stage = request.optional("stage");
    if let Some(stage) = stage {
        stage.parse::<Stage>().map_err(|error| ApiError::BadRequest(error.to_string()))?;
    }
    let pods = shared.kinds.named("pods").await?;
    let pods = pods.ok_or_else(|| ApiError::NotFound("the cluster has no pods".into()))?;
    annotate(shared, target(&pods, Some(namespace), name), json!({STAGE: stage})).await?;
    Ok(json!({"done": true}))
}

/// Changes annotations of an object; null removes one.
pub(crate) async fn annotate(
    shared: &Shared,
    target: kopf_client::Target<'_>,
    annotations: Value,
) -> Result<(), ApiError> {
    let patch = json!({"metadata": {"annotations": annotations}}).to_string();
    shared.cluster.patch(target, PatchContent::Merge(Bytes::from(patch)), Urgency::Normal).await?;
    Ok(())
}

/// Deletes an object of an embedded cluster.
pub(crate) async fn delete(shared: &Shared, request: &PageRequest) -> ApiResult {
    check_embedded(shared)?;
    let resource = resource_of(shared, request).await?;
    let (namespace, name) = (request.optional_name("namespace")?, request.name("name")?);
    let path = format!("{}/{name}", collection_path(&resource, namespace));
    let request = http::Request::delete(path).body(b"{}".to_vec());
    let request = request.map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let _gone: Value = shared.cluster.client().await?.request(request).await?;
    Ok(json!({"done": true}))
}
