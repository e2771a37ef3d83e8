//! Field managers that own fields in a different version from the one being written.
//!
//! Without a conversion webhook, an object has the same fields in all versions. If the other
//! version does not declare some of them, ownership cannot be determined: an update then drops all
//! managed fields, and an apply fails, as in upstream.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Change};
use crate::apply::{self, Claim, Elsewhere, ManagedFields, Owned, Restated};
use crate::convert::seen_as;
use crate::resource::{ResourceInfo, split_api_version};
use crate::{StatusError, Stored, convert, meta};

/// Removes fields that an applier set last time in another version, does not set now, and that
/// nobody else owns.
///
/// Follows upstream's steps: the object is pruned in the version of the last apply, fields that are
/// owned in any version are restored, and the object is converted back. Webhooks may see objects
/// without required fields. Versions that are no longer served are ignored.
pub(super) async fn prune_restated(
    call: &Call,
    before: Owned<'_>,
    object: &mut Value,
    managed: &mut ManagedFields,
) -> Result<(), StatusError> {
    let inner = &call.inner;
    let own = call.resource.api_version();
    let now = meta::format_time(inner.clock.now());
    let manager = call.field_manager(&own, &now);
    let Some(restated) = Restated::find(&manager, before.managed) else { return Ok(()) };
    let Some(last) = version_of(call, restated.api_version()) else { return Ok(()) };
    let original = seen_as(inner, &last, object.clone()).await?;
    if let Some(problem) = undeclared(&last, &original) {
        let step = "failed to convert merged object to last applied version";
        return Err(StatusError::new(
            500,
            "",
            format!("failed to prune fields: {step}: {problem}"),
        ));
    }
    let mut pruned = restated.without_last(&original, last.schema.as_deref());
    let mut merged = original.clone();
    // First the version in which it was pruned: a conversion may need fields that others own there.
    let mut versions = vec![restated.api_version().to_owned()];
    versions.extend(apply::other_versions(managed, restated.api_version()));
    for api_version in versions {
        let Some(resource) = version_of(call, &api_version) else { continue };
        merged = seen_as(inner, &resource, merged).await?;
        if let Some(problem) = undeclared(&resource, &merged) {
            let step = "failed add back owned items";
            let problem = format!("failed to prune fields: {step}: {problem}");
            return Err(StatusError::new(500, "", problem));
        }
        pruned = seen_as(inner, &resource, pruned).await?;
        let schema = resource.schema.as_deref();
        pruned = restated.with_owned(managed, &api_version, schema, (&merged, &pruned));
    }
    let pruned = seen_as(inner, &last, pruned).await?;
    let pruned = restated.with_dangling(last.schema.as_deref(), (&original, &pruned));
    if pruned != original {
        *object = seen_as(inner, &call.resource, pruned).await?;
        *managed = restated.touched(managed, &now);
    }
    Ok(())
}

/// The undeclared fields of an object that no webhook has converted.
fn undeclared(resource: &ResourceInfo, object: &Value) -> Option<String> {
    match convert::is_rewritten(resource) {
        true => None,
        false => apply::undeclared(resource.schema.as_deref(), object),
    }
}

/// The same resource in another served version.
fn version_of(call: &Call, api_version: &str) -> Option<Arc<ResourceInfo>> {
    let (group, version) = split_api_version(api_version);
    let registry = call.inner.registry();
    let found = registry.find(group, version, &call.resource.resource)?;
    (found.table == call.resource.table).then(|| Arc::clone(found))
}

/// The managed fields after a write, with changed fields taken from managers of other versions.
///
/// `managed` is the result of the write in its own version. Versions that are no longer served are
/// ignored.
pub(super) async fn settle(
    call: &Call,
    change: Change,
    stored: &Arc<Stored>,
    before: Owned<'_>,
    object: &Value,
    mut managed: ManagedFields,
) -> Result<ManagedFields, StatusError> {
    let own = call.resource.api_version();
    let claim = match change {
        Change::Apply => Claim::Apply { force: call.options.force == Some(true) },
        Change::Put | Change::Patch => Claim::Update,
    };
    for api_version in apply::other_versions(before.managed, &own) {
        let Some(other) = version_of(call, &api_version) else { continue };
        let new = seen_as(&call.inner, &other, object.clone()).await?;
        let old = match convert::is_rewritten(&other) {
            true => convert::served(&call.inner, &other, stored).await?.content().clone(),
            false => seen_as(&call.inner, &other, before.object.clone()).await?,
        };
        let problem = undeclared(&other, &old).or_else(|| undeclared(&other, &new));
        match problem {
            Some(problem) if change == Change::Apply => {
                return Err(StatusError::new(500, "", problem));
            }
            Some(_) => return Ok(ManagedFields::default()),
            None => {}
        }
        let schema = other.schema.as_deref();
        let elsewhere = Elsewhere { api_version: &api_version, schema, old: &old, new: &new };
        let manager = call.field_manager(&own, "");
        managed = apply::settle(&manager, &elsewhere, before.managed, &managed, claim)?;
    }
    Ok(managed)
}
