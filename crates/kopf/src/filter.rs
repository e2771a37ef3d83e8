//! Conditions for handlers: the arguments of the builder methods, and the data that conditions see.
//!
//! ```
//! use kopf::input::Diff;
//! use kopf::prelude::*;
//! use kopf::closure;
//! use kopf::filter::{MetaFilter, Occasion, Subject, ValueFilter, meta_matches, meta_matches_with};
//!
//! /// A condition can see the object and what happened to it.
//! fn was_paused(subject: &Subject, occasion: &Occasion) -> bool {
//!     let Occasion::Change(change) = occasion else { return false };
//!     let was = |side: &Value| side["spec"]["paused"] == json!(true);
//!     subject.object.label("tier").is_some() && change.old.as_ref().is_some_and(|old| was(old.value()))
//! }
//!
//! #[kopf::on::update("kopfexamples", when = was_paused)]
//! async fn resumed() {}
//!
//! let large = closure::update("kopfexamples", |name: Name| async move { drop(name) })
//!     .label("app", MetaFilter::Equals("web".into()))
//!     .label("tier", meta_matches(|tier| tier != Some("test")))
//!     .label("team", meta_matches_with(|team: Option<&str>, spec: &Spec| team == spec["team"].as_str()))
//!     .field("spec.size")
//!     .value(ValueFilter::Present)
//!     .when(|diff: &Diff| diff.touches("spec.size"));
//! let operator = kopf::operator!("demo", [resumed]).with(large);
//! ```
//!
//! Conditions must return at once. One that reads files or asks other services is wrapped in
//! [`blocking`]; lifecycles and storages call [`on_thread`] or [`later`] for such work. The engine
//! then waits for the answer without delaying other objects:
//!
//! ```
//! use kopf::filter::blocking;
//! use kopf::prelude::*;
//!
//! fn is_licensed(spec: &Spec) -> bool {
//!     let licenses = std::fs::read_to_string("/etc/licenses").unwrap_or_default();
//!     licenses.lines().any(|line| Some(line) == spec["license"].as_str())
//! }
//!
//! #[kopf::on::create("kopfexamples", when = blocking(is_licensed))]
//! async fn created() {}
//! ```

pub use kopf_core::answers::{CallbackId, later, on_thread};
pub use kopf_core::filter::{Filters, MetaFilter, ValueFilter};
pub use kopf_core::invoke::CallbackError;
pub use kopf_core::occasion::{Occasion, Subject};
pub use kopf_handler::filter::{
    Acceptance, Blocking, Condition, FilterInput, blocking, meta_matches, meta_matches_with,
    value_matches, value_matches_with,
};
