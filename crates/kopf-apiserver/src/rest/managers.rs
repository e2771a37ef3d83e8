//! Managers of fields who know an object in another version than the one it is written in.
//!
//! Only where a webhook converts: elsewhere all versions have the same fields.

use std::sync::Arc;

use serde_json::Value;

use super::{Call, Change};
use crate::apply::{self, Claim, Elsewhere, ManagedFields, Owned};
use crate::{StatusError, Stored, convert};

/// The managed fields after a write, once those of other versions have lost what it changed.
///
/// `managed` is what the write came to in its own version. Versions that are not served any more
/// are left alone.
pub(super) async fn settle(
    call: &Call,
    change: Change,
    stored: &Arc<Stored>,
    before: Owned<'_>,
    object: &Value,
    mut managed: ManagedFields,
) -> Result<ManagedFields, StatusError> {
    let resource = &call.resource;
    let own = resource.api_version();
    let claim = match change {
        Change::Apply => Claim::Apply { force: call.options.force == Some(true) },
        Change::Put | Change::Patch => Claim::Update,
    };
    for api_version in apply::other_versions(before.managed, &own) {
        let (group, version) = crate::resource::split_api_version(&api_version);
        let registry = call.inner.registry();
        let found = registry.find(group, version, &resource.resource);
        let Some(other) = found.filter(|other| other.table == resource.table) else { continue };
        let old = convert::served(&call.inner, other, stored).await?;
        let new = convert::seen_as(&call.inner, other, object.clone()).await?;
        let schema = other.schema.as_deref();
        let elsewhere =
            Elsewhere { api_version: &api_version, schema, old: old.content(), new: &new };
        let manager = call.field_manager(&own, "");
        managed = apply::settle(&manager, &elsewhere, before.managed, &managed, claim)?;
    }
    Ok(managed)
}
