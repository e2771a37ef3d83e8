//! Parameters of handlers, and traits for parameters of your own.
//!
//! The [crate documentation](crate#inputs) says which parameter exists in which kind of handlers.
//! Parameters about children are in [`kopf::children`](crate::children); `&Index<function>` is
//! [`kopf::index::Index`](crate::index::Index).
//!
//! # Parameters of your own
//!
//! By value, it is an [`Input`] for the kinds of handlers that have what it is made of
//! ([`kopf::kind`](crate::kind)). It looks at the [`Call`], and may take other inputs:
//!
//! ```
//! use std::collections::HashMap;
//!
//! use kopf::input::{Call, Input, Labels, Requirement};
//! use kopf::kind::ObjectKind;
//! use kopf::prelude::*;
//!
//! struct Budgets(HashMap<String, u32>);
//!
//! /// What the team of the object may spend.
//! struct Budget(u32);
//!
//! impl<K: ObjectKind> Input<K> for Budget {
//!     fn take(call: &Call) -> Result<Self> {
//!         let labels: Labels = Input::<K>::take(call)?;
//!         let budgets: State<Budgets> = Input::<K>::take(call)?;
//!         let team = labels.get("team").unwrap_or("nobody");
//!         let missing = || kopf::permanent(format!("team {team} has no budget"));
//!         budgets.0.get(team).map(|budget| Self(*budget)).ok_or_else(missing)
//!     }
//!
//!     // Checked before the operator starts.
//!     fn requires() -> Option<Requirement> {
//!         Some(Requirement::state::<Budgets>())
//!     }
//! }
//!
//! #[kopf::on::create("databases.example.com")]
//! async fn create(budget: Budget) -> Result<u32> {
//!     Ok(budget.0)
//! }
//!
//! let operator = kopf::operator!("demo", [create]);
//! assert!(operator.check().is_err(), "nobody gives the budgets");
//! assert!(operator.state(Budgets(HashMap::new())).check().is_ok());
//! ```
//!
//! A failure of an input is a failure of the handler, and follows the same rules.
//!
//! By reference, it implements [`FromObject`], or [`InputRef`] if it is not read from the object. What
//! implements `FromObject` also works in conditions. Types with `serde::Deserialize` implement it already.
//!
//! ```
//! use kopf::filter::Subject;
//! use kopf::input::FromObject;
//! use kopf::prelude::*;
//!
//! struct Team(String);
//!
//! impl FromObject for Team {
//!     fn from_object(subject: &Subject) -> Result<Self> {
//!         Ok(Self(subject.object.label("team").unwrap_or("nobody").to_owned()))
//!     }
//! }
//!
//! #[kopf::on::create("databases.example.com", when = |team: &Team| team.0 != "nobody")]
//! async fn create(team: &Team) {
//!     println!("for {}", team.0);
//! }
//! ```
//!
//! What handlers change is an [`InputMut`]: it is put back after the function, failed or not.

pub use kopf_core::handler::Touches;
pub use kopf_core::invoke::{Attempt, Call, StopReason};
pub use kopf_core::occasion::EventKind;
pub use kopf_core::{Reason, Settings};
pub use kopf_handler::input::{
    AdmissionRequest, Cause, Change, Conditions, Diff, DryRun, Headers, Input, InputMut, InputRef,
    Live, Memo, New, Now, Old, Operation, Param, Patch, RawEvent, Recorder, Requirement,
    SharedMemo, State, Status, Stopped, Typed, User, Warnings,
};
pub use kopf_handler::{
    Annotations, FromObject, Labels, Meta, Name, Namespace, Object, Spec, SubHandlers, Uid,
};
pub use kopf_model::condition::{Condition, ConditionStatus};
