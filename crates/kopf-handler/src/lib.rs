//! Typed Rust handlers: parameters, outcomes, and adaptors from functions to `Invoke`.
//!
//! Knows only the contract of `kopf-core`: neither the engine nor a cluster. Users import it
//! through the crate `kopf`.

pub mod children;
pub mod closure;
pub mod declare;
pub mod desired;
pub mod duration;
pub mod error;

pub mod filter;
pub mod hierarchy;
pub mod index;
pub mod input;
pub mod kind;
mod merge;
pub mod object;
pub mod outcome;
#[doc(hidden)]
pub mod private;
pub mod selector;
pub mod sub_handlers;
pub mod testing;

pub use children::Children;
pub use desired::Child;
pub use duration::Seconds;
pub use error::{Error, Result, ResultExt, deny, permanent, temporary};
pub use hierarchy::Owner;
pub use input::Patch;
pub use object::{Annotations, FromObject, Labels, Meta, Name, Namespace, Object, Spec, Uid};
pub use sub_handlers::SubHandlers;
