//! The Kubernetes semantics of objects: schemas, CEL, server-side apply, patches, selectors,
//! metadata, formats, quantities and errors.
//!
//! Pure code over `serde_json::Value`, without a store, requests, tasks or a clock.

pub mod access;
mod api_version;
pub mod apply;
mod cause;
pub mod decode;
pub mod encoding;
mod field_error;
pub mod fields;
pub mod go_print;
mod identity;
pub mod json_path;
pub mod label_selectors;
pub mod lockstep;
pub mod meta;
pub mod names;
pub mod pack;
pub mod patch;
mod protobuf;
pub mod quantity;
pub mod registry;
pub mod resource;
pub mod schema;
pub mod selector;
pub mod shape;
pub mod status_error;
pub mod stored;
mod user;

pub use cause::Cause;
pub use field_error::{FieldError, FieldErrorReason};
pub use resource::{CustomResource, ResourceInfo, ScalePaths, Subresource};
pub use status_error::{Details, StatusError};
pub use stored::Stored;
pub use user::User;
