//! Parameters of handlers, and traits for defining your own.
//!
//! The [crate documentation](crate#inputs) lists which parameters each kind of handler can take.
//! Parameters about children are in [`kopf::children`](crate::children); `&Index<function>` is
//! [`kopf::index::Index`](crate::index::Index).
//!
//! # Your own parameters
//!
//! A parameter by value implements [`Input`] for every kind of handler that has the data it needs
//! ([`kopf::kind`](crate::kind)). It reads the [`Call`] and may take other inputs:
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
//! /// The budget of the object's team.
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
//! An input that fails makes the handler fail, by the same rules.
//!
//! A parameter by reference implements [`FromObject`], or [`InputRef`] if it is not read from the
//! object. A type that implements `FromObject` also works in conditions. Types with
//! `serde::Deserialize` implement it already.
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
//! A parameter that handlers modify implements [`InputMut`]: the engine takes it back after the
//! function returns, even if the function failed.

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
