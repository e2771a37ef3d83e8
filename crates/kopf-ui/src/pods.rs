//! Actions on the objects of an embedded cluster: change the stage of Pods, delete objects.

use bytes::Bytes;
use kopf_apiserver::Stage;
use kopf_client::{PatchContent, Urgency};
use serde_json::{Value, json};

use crate::answers::{Answered, Refused};
use crate::asked::Asked;
use crate::children::{address, collection_path, target};
use crate::desk::Desk;

/// The annotation with the stage of a Pod in the embedded server.
const STAGE: &str = "kopf.dev/stage";
/// The error for other clusters.
const ONLY_EMBEDDED: &str = "only embedded clusters are controlled here";

/// Rejects clusters that are not embedded.
pub(crate) fn check_embedded(desk: &Desk) -> Result<&kopf_apiserver::Server, Refused> {
    desk.embedded.as_ref().ok_or(Refused::Forbidden(ONLY_EMBEDDED))
}

/// Sets the stage of a Pod; an empty one resets it.
pub(crate) async fn stage(desk: &Desk, asked: &Asked) -> Answered {
    check_embedded(desk)?;
    let (namespace, name) = (asked.name("namespace")?, asked.name("name")?);
    let stage = asked.optional("stage");
    if let Some(stage) = stage {
        stage.parse::<Stage>().map_err(|error| Refused::Mistake(error.to_string()))?;
    }
    let pods = desk.kinds.named("pods").await?;
    let pods = pods.ok_or_else(|| Refused::Absent("the cluster has no pods".into()))?;
    annotate(desk, target(&pods, Some(namespace), name), json!({STAGE: stage})).await?;
    Ok(json!({"done": true}))
}

/// Changes annotations of an object; null removes one.
pub(crate) async fn annotate(
    desk: &Desk,
    target: kopf_client::Target<'_>,
    annotations: Value,
) -> Result<(), Refused> {
    let patch = json!({"metadata": {"annotations": annotations}}).to_string();
    desk.cluster.patch(target, PatchContent::Merge(Bytes::from(patch)), Urgency::Normal).await?;
    Ok(())
}

/// Deletes an object of an embedded cluster.
pub(crate) async fn delete(desk: &Desk, asked: &Asked) -> Answered {
    check_embedded(desk)?;
    let resource = address(desk, asked).await?;
    let (namespace, name) = (asked.optional_name("namespace")?, asked.name("name")?);
    let path = format!("{}/{name}", collection_path(&resource, namespace));
    let request = http::Request::delete(path).body(b"{}".to_vec());
    let request = request.map_err(|error| Refused::Mistake(error.to_string()))?;
    let _gone: Value = desk.cluster.client().await?.request(request).await?;
    Ok(json!({"done": true}))
}
