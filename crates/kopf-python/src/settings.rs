//! Settings and storages as Python describes them.

use std::sync::Arc;

use kopf_core::settings::{
    DiffbaseStorageSetting, ProgressStorageSetting, SelectorMapping, SettingError, Settings,
};
use kopf_model::keys::{EmptyPrefix, KeyMaker};
use kopf_model::storage::{
    AnnotationsDiffBase, AnnotationsProgress, CompactDiffBase, DiffBaseStorage, MultiDiffBase,
    MultiProgress, ProgressStorage, SmartProgress, StatusDiffBase, StatusProgress,
};
use kopf_model::{FieldPath, Selector};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ask::Asker;
use crate::storage::{PythonDiffBase, PythonProgress};

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidSettings {
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("the prefix of annotations in settings.persistence must not be empty")]
    Prefix(#[from] EmptyPrefix),
    #[error("the storage in settings.persistence is not understood")]
    Storage(#[from] serde_json::Error),
    #[error("a selector in settings.watching is not understood: {0}")]
    Selector(String),
}

#[derive(Deserialize)]
struct StorageDescription {
    #[serde(rename = "type")]
    kind: String,
    prefix: Option<String>,
    v1: Option<bool>,
    verbose: Option<bool>,
    touch_key: Option<String>,
    field: Option<Vec<String>>,
    touch_field: Option<Vec<String>>,
    key: Option<String>,
    #[serde(default)]
    ignored_fields: Vec<Vec<String>>,
    #[serde(default)]
    storages: Vec<StorageDescription>,
}

/// Takes over what differs; the values are by dotted names.
pub(crate) fn apply(
    settings: &mut Settings,
    values: &Map<String, Value>,
    asker: &Asker,
) -> Result<(), InvalidSettings> {
    for (name, value) in values {
        match name.as_str() {
            "persistence.progress_storage" => {
                settings.persistence.progress_storage =
                    ProgressStorageSetting::Custom(progress(value, asker)?);
            }
            "persistence.diffbase_storage" => {
                settings.persistence.diffbase_storage =
                    DiffbaseStorageSetting::Custom(diffbase(value, asker)?);
            }
            "watching.label_selectors" => {
                fill(&mut settings.watching.label_selectors, value)?;
            }
            "watching.field_selectors" => {
                fill(&mut settings.watching.field_selectors, value)?;
            }
            "watching.shard_selectors" => {
                fill(&mut settings.watching.shard_selectors, value)?;
            }
            _ => settings.set(name, value)?,
        }
    }
    Ok(())
}

/// Pairs of a selector and a text.
fn fill(mapping: &mut SelectorMapping, pairs: &Value) -> Result<(), InvalidSettings> {
    mapping.clear();
    let pairs: Vec<(crate::declare::SelectorDeclaration, String)> =
        serde_json::from_value(pairs.clone())?;
    for (selector, text) in pairs {
        let selector: Selector =
            selector.build().map_err(|error| InvalidSettings::Selector(error.to_string()))?;
        mapping.insert(selector, text);
    }
    Ok(())
}

fn path(keys: &[String]) -> FieldPath {
    FieldPath::from_keys(keys.iter().map(String::as_str))
}

fn keys(description: &StorageDescription) -> Result<KeyMaker, EmptyPrefix> {
    let keys = KeyMaker::new(description.prefix.clone().unwrap_or_default())?;
    Ok(if description.v1 == Some(false) { keys.without_v1() } else { keys })
}

fn annotations_progress(
    description: &StorageDescription,
) -> Result<AnnotationsProgress, InvalidSettings> {
    let mut storage = AnnotationsProgress::new(keys(description)?);
    if description.verbose == Some(true) {
        storage = storage.verbose();
    }
    if let Some(key) = &description.touch_key {
        storage = storage.touching(key);
    }
    Ok(storage)
}

fn status_progress(description: &StorageDescription) -> StatusProgress {
    let field = description.field.as_deref().unwrap_or_default();
    let touch_field = description.touch_field.as_deref().unwrap_or_default();
    StatusProgress::in_fields(path(field), path(touch_field))
}

fn progress(value: &Value, asker: &Asker) -> Result<Arc<dyn ProgressStorage>, InvalidSettings> {
    if value.is_null() {
        return Ok(Arc::new(PythonProgress::new(asker.clone())));
    }
    let description: StorageDescription = serde_json::from_value(value.clone())?;
    Ok(match description.kind.as_str() {
        "annotations" => Arc::new(annotations_progress(&description)?),
        "status" => Arc::new(status_progress(&description)),
        "smart" => Arc::new(SmartProgress {
            annotations: annotations_progress(&description)?,
            status: status_progress(&description),
        }),
        _ => {
            let mut parts: Vec<Box<dyn ProgressStorage>> = Vec::new();
            for part in &description.storages {
                parts.push(match part.kind.as_str() {
                    "annotations" => Box::new(annotations_progress(part)?),
                    _ => Box::new(status_progress(part)),
                });
            }
            Arc::new(MultiProgress(parts))
        }
    })
}

fn diffbase(value: &Value, asker: &Asker) -> Result<Arc<dyn DiffBaseStorage>, InvalidSettings> {
    if value.is_null() {
        return Ok(Arc::new(PythonDiffBase::new(asker.clone())));
    }
    let description: StorageDescription = serde_json::from_value(value.clone())?;
    Ok(match description.kind.as_str() {
        "annotations" => Arc::new(annotations_diffbase(&description)?),
        "status" => Arc::new(status_diffbase(&description)),
        _ => {
            let mut parts: Vec<Box<dyn DiffBaseStorage>> = Vec::new();
            for part in &description.storages {
                parts.push(match part.kind.as_str() {
                    "annotations" => Box::new(annotations_diffbase(part)?),
                    _ => Box::new(status_diffbase(part)),
                });
            }
            Arc::new(MultiDiffBase(parts))
        }
    })
}

/// Byte by byte as Kopf writes it, as long as it fits.
fn annotations_diffbase(
    description: &StorageDescription,
) -> Result<CompactDiffBase, InvalidSettings> {
    let key = description.key.clone().unwrap_or_default();
    let plain = AnnotationsDiffBase::new(keys(description)?, key);
    let ignored = description.ignored_fields.iter().map(|keys| path(keys));
    Ok(CompactDiffBase::new(plain.ignoring(ignored)))
}

fn status_diffbase(description: &StorageDescription) -> StatusDiffBase {
    let field = description.field.as_deref().unwrap_or_default();
    let ignored = description.ignored_fields.iter().map(|keys| path(keys));
    StatusDiffBase::in_field(path(field)).ignoring(ignored)
}
