//! Validates objects against the schema of a custom resource, without blocking other requests.
//!
//! Expensive rules are evaluated on another thread.

use std::sync::Arc;

use serde_json::Value;

use super::Call;
use crate::schema::{self, Schema, Verdict, cel};
use crate::{StatusError, meta};

/// Validates the new state of the object of a call.
pub(super) async fn of(
    call: &Call,
    object: &Value,
    old: Option<&Value>,
) -> Result<Verdict, StatusError> {
    let Some(schema) = call.resource.schema.as_ref().filter(|_| call.resource.is_custom()) else {
        return Ok(Verdict::default());
    };
    let is_status = old.is_some() && call.info.subresource == "status";
    if let Some(verdict) = cel::quickly(|| judge(schema, is_status, object, old)) {
        return Ok(verdict);
    }
    let (schema, object, old) = (Arc::clone(schema), object.clone(), old.cloned());
    let name = meta::text(&object, "name").to_owned();
    tokio::task::spawn_blocking(move || judge(&schema, is_status, &object, old.as_ref()))
        .await
        .map_err(|error| StatusError::internal(format!("could not validate {name}: {error}")))
}

fn judge(schema: &Schema, is_status: bool, object: &Value, old: Option<&Value>) -> Verdict {
    match is_status {
        true => schema::validate_status(schema, object, old),
        false => schema::validate(schema, object, old),
    }
}
