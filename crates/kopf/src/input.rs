//! Inputs of your own: parameters that handlers name like all others.
//!
//! By value, it is an [`Input`] for the kinds of handlers that have what it is made of
//! ([`kopf::kind`](crate::kind)). It looks at the [`Call`], and may take other inputs:
//!
//! ```
//! use std::collections::HashMap;
//!
//! use kopf::input::{Input, Requirement};
//! use kopf::kind::ObjectKind;
//! use kopf::prelude::*;
//!
//! struct Budgets(HashMap<String, u32>);
//!
//! /// What the team of the object may spend.
//! struct Budget(u32);
//!
//! impl<K: ObjectKind> Input<K> for Budget {
//!     fn take(call: &kopf::Call) -> Result<Self> {
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
//! By reference, it is a [`View`] of the object, or anything else as an [`InputRef`]. Views work in
//! conditions, too. Types with `serde::Deserialize` are views already.
//!
//! ```
//! use kopf::filter::Subject;
//! use kopf::prelude::*;
//! use kopf::View;
//!
//! struct Team(String);
//!
//! impl View for Team {
//!     fn view(subject: &Subject) -> Result<Self> {
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
pub use kopf_handler::input::{Input, InputMut, InputRef, Requirement};

#[cfg(doc)]
use crate::{Call, View};
