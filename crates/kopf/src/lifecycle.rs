//! Decides which of the due handlers run now, and in which order; see
//! [`Operator::lifecycle`](crate::Operator::lifecycle).
//!
//! ```
//! use kopf::lifecycle::Lifecycle;
//!
//! // One handler at a time, in declaration order.
//! let operator = kopf::Operator::new("demo").lifecycle(Lifecycle::OneByOne);
//!
//! // Handlers that never failed run first, without the others.
//! let spotless = Lifecycle::custom(|due, progress| {
//!     let (spotless, others): (Vec<_>, Vec<_>) =
//!         due.into_iter().partition(|handler| progress.retries(&handler.id) == 0);
//!     if spotless.is_empty() { others } else { spotless }
//! });
//! let operator = operator.lifecycle(spotless);
//! ```

pub use kopf_core::invoke::CallbackError;
pub use kopf_core::lifecycle::{ChooseFn, Lifecycle};
pub use kopf_core::progress::State as Progress;
