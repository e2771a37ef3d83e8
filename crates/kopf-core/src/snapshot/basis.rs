//! Which watches may continue from a snapshot, and what that depends on.

use kopf_model::shards::hash;
use serde_json::{Value, json};

use crate::filter::{Filters, MetaFilter, ValueFilter};
use crate::handler::{Handler, HandlerKind};
use crate::registry::ResourceHandlers;
use crate::settings::{DiffbaseStorageSetting, Persistence, ProgressStorageSetting, Settings};

/// Whether such a handler must see all existing objects after a restart.
///
/// | handlers | all objects | because |
/// |---|---|---|
/// | create, update, delete, field | no | their state is stored on the objects |
/// | resume | yes | they are called for every object |
/// | events | yes | they get every object once |
/// | daemons, timers | yes | they run for every object |
/// | indexes | yes | they have every object |
/// | desired children, observers | yes | children are compared with their owners |
/// | with conditions that are functions | yes | functions may return other results than before |
#[must_use]
pub fn needs_all_objects(handler: &Handler) -> bool {
    use HandlerKind as Kind;
    let is_called_for_changes = match &handler.kind {
        Kind::Create | Kind::Update | Kind::Delete { .. } | Kind::Field | Kind::Sub => true,
        // They have nothing to do with watches.
        Kind::Validate(_)
        | Kind::Mutate(_)
        | Kind::Convert(_)
        | Kind::Startup
        | Kind::Cleanup
        | Kind::Login
        | Kind::Probe => true,
        Kind::Resume { .. }
        | Kind::Event
        | Kind::Daemon(_)
        | Kind::Timer(_)
        | Kind::Index
        | Kind::Desired
        | Kind::Observe => false,
    };
    !is_called_for_changes || !handler.children.is_empty() || conditions(&handler.filters).is_none()
}

/// The data that decides which objects have work left: the handlers of a resource, and the
/// settings. `None` if the watch of the resource cannot continue from a snapshot.
///
/// An operator whose handlers or settings have changed lists its objects, since it may, for
/// example, have to add or remove its finalizer.
#[must_use]
pub fn basis(handlers: &ResourceHandlers, settings: &Settings) -> Option<String> {
    let ResourceHandlers { watching, changing, spawning, indexing, desired, .. } = handlers;
    let mut all = [watching, changing, spawning, indexing, desired].into_iter().flatten();
    if all.any(|handler| needs_all_objects(handler)) {
        return None;
    }
    let handlers: Vec<Value> = changing.iter().map(|it| describe(it)).collect::<Option<_>>()?;
    let basis = json!([
        env!("CARGO_PKG_VERSION"),
        handlers,
        settings.persistence.finalizer,
        storages(&settings.persistence, settings.snapshots.storages.as_deref())?,
    ]);
    Some(format!("{:016x}", hash(basis.to_string().as_bytes())))
}

fn storages(persistence: &Persistence, custom: Option<&str>) -> Option<Value> {
    let Persistence { progress_storage, diffbase_storage, .. } = persistence;
    let is_custom = matches!(progress_storage, ProgressStorageSetting::Custom(_))
        || matches!(diffbase_storage, DiffbaseStorageSetting::Custom(_));
    if is_custom && custom.is_none() {
        return None;
    }
    Some(json!([format!("{progress_storage:?}"), format!("{diffbase_storage:?}"), custom]))
}

fn describe(handler: &Handler) -> Option<Value> {
    let kind = match &handler.kind {
        HandlerKind::Create => "create",
        HandlerKind::Update => "update",
        HandlerKind::Delete { optional: false } => "delete",
        HandlerKind::Delete { optional: true } => "delete, optional",
        HandlerKind::Field => "field",
        HandlerKind::Sub => "sub",
        _ => return None,
    };
    Some(json!([kind, &*handler.id, conditions(&handler.filters)?]))
}

/// The conditions of a handler as data; `None` if there are functions among them.
fn conditions(filters: &Filters) -> Option<Value> {
    let Filters { labels, annotations, field, value, old, new, when } = filters;
    if when.is_some() {
        return None;
    }
    let metadata = |conditions: &[(String, MetaFilter)]| -> Option<Vec<Value>> {
        let describe =
            |(key, filter): &(String, MetaFilter)| Some(json!([key, of_metadata(filter)?]));
        conditions.iter().map(describe).collect()
    };
    let value_of = |filter: &Option<ValueFilter>| match filter {
        None => Some(Value::Null),
        Some(filter) => of_value(filter),
    };
    Some(json!({
        "labels": metadata(labels)?,
        "annotations": metadata(annotations)?,
        "field": field.as_ref().map(ToString::to_string),
        "value": value_of(value)?,
        "old": value_of(old)?,
        "new": value_of(new)?,
    }))
}

fn of_metadata(filter: &MetaFilter) -> Option<Value> {
    match filter {
        MetaFilter::Equals(text) => Some(json!({"equals": text})),
        MetaFilter::Present => Some(json!("present")),
        MetaFilter::Absent => Some(json!("absent")),
        MetaFilter::Matches(_) => None,
    }
}

fn of_value(filter: &ValueFilter) -> Option<Value> {
    match filter {
        ValueFilter::Equals(value) => Some(json!({"equals": value})),
        ValueFilter::Present => Some(json!("present")),
        ValueFilter::Absent => Some(json!("absent")),
        ValueFilter::Matches(_) => None,
    }
}
