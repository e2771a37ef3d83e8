//! Where operators store their records on objects: Kopf's storages, and the traits for your own.
//!
//! ```
//! use kopf::Settings;
//! use kopf::prelude::*;
//! use kopf::settings::{DiffbaseStorageSetting, ProgressStorageSetting};
//! use kopf::storage::{AnnotationsProgress, KeyMaker, MultiProgress, StatusProgress};
//! use std::sync::Arc;
//!
//! #[kopf::on::startup]
//! async fn configure(settings: &mut Settings) -> Result {
//!     let persistence = &mut settings.persistence;
//!     // Either a named storage ...
//!     persistence.diffbase_storage = DiffbaseStorageSetting::Status { name: "my-op".into() };
//!     // ... or a composed one. Implement `ProgressStorage` for your own.
//!     let keys = KeyMaker::new("my-op.example.com")?;
//!     persistence.progress_storage = ProgressStorageSetting::Custom(Arc::new(MultiProgress(vec![
//!         Box::new(AnnotationsProgress::new(keys)),
//!         Box::new(StatusProgress::named("my-op")),
//!     ])));
//!     Ok(())
//! }
//! ```

pub use kopf_model::keys::{EmptyPrefix, KeyMaker};
pub use kopf_model::storage::{
    ANNOTATIONS_SIZE_MAX, AnnotationsDiffBase, AnnotationsProgress, CompactDiffBase,
    DiffBaseStorage, MultiDiffBase, MultiProgress, ProgressStorage, SmartProgress, StatusDiffBase,
    StatusProgress, StorageError, StorageErrorKind, StoredForm,
};
pub use kopf_model::{
    CallbackError, Essence, FieldPath, Object as RawObject, Patch as RawPatch, ProgressRecord,
    Timestamp,
};
