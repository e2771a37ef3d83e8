//! Inputs: the data that a handler requests through its parameters.
//!
//! Each input implements traits for the kinds of handlers that can take it. Values are taken from
//! the [`Call`] just before the function runs; modified ones are put back right after it.

mod admission;
mod background;
mod change;
mod conditions;
mod memo;
mod object;
mod operator;
mod status;

use std::future::Future;

use kopf_core::handler::Touches;
use kopf_core::{Call, Subject};

use crate::error::Error;
use crate::kind::Kind;

pub use admission::{AdmissionRequest, DryRun, Headers, Operation, User, Warnings};
pub use background::{Live, Stopped};
pub use change::{Cause, Change, Diff, New, Old, RawEvent};
pub use conditions::Conditions;
pub use memo::{Memo, MemoKind, SharedMemo};
pub use object::{Mutable, Patch, Path, Recorder, Typed};
pub use operator::{Now, Param, Requirement, State};
pub use status::Status;

/// A parameter taken by value.
///
/// Implement it to define your own input:
///
/// ```
/// use kopf_handler::{Error, input::Input, kind::ReadKind};
///
/// struct Team(String);
///
/// impl<K: ReadKind> Input<K> for Team {
///     fn take(call: &kopf_core::Call) -> Result<Self, Error> {
///         let object = &call.subject.as_ref().expect("there is an object in these kinds").object;
///         Ok(Self(object.label("team").unwrap_or("nobody").to_owned()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a `{HandlerKind}` handler has no input `{Self}`",
    label = "not an input of `{HandlerKind}` handlers",
    note = "typed objects and views are taken by reference, as in `&Database`; changeable inputs by `&mut`; the `T` of a `SharedMemo<T>` implements `Default`, and `Clone` in startup handlers"
)]
pub trait Input<HandlerKind: Kind>: Sized {
    /// Takes the value.
    ///
    /// # Errors
    /// A failure counts as the handler's own failure.
    fn take(call: &Call) -> Result<Self, Error>;

    /// What must exist before the operator starts.
    #[must_use]
    fn requires() -> Option<Requirement> {
        None
    }

    /// What the function may write through this input; determines the generated rights.
    #[must_use]
    fn touches() -> Touches {
        Touches::nothing()
    }
}

/// A parameter taken by reference, as in `&Spec`.
#[diagnostic::on_unimplemented(
    message = "a `{HandlerKind}` handler has no input `&{Self}`",
    label = "not an input of `{HandlerKind}` handlers"
)]
pub trait InputRef<HandlerKind: Kind>: Sized {
    /// Takes the value that is then passed to the function by reference.
    ///
    /// # Errors
    /// A failure counts as the handler's own failure.
    fn take(call: &Call) -> Result<Self, Error>;

    /// What must exist before the operator starts.
    #[must_use]
    fn requires() -> Option<Requirement> {
        None
    }
}

/// A parameter that the function may modify, as in `&mut Patch`.
#[diagnostic::on_unimplemented(
    message = "a `{HandlerKind}` handler has no input `&mut {Self}`",
    label = "not a changeable input of `{HandlerKind}` handlers",
    note = "changeable inputs are `Patch`, `Status<T>` (if `T` implements `Default`), `Conditions` and `Memo<T>` of object handlers (daemons take `SharedMemo<T>` by value), `Warnings` of webhooks, `Typed<T>` of mutating webhooks, `Settings` of activities"
)]
pub trait InputMut<HandlerKind: Kind>: Sized {
    /// The data kept between the start and the end of the function.
    type Held: AsMut<Self> + Send;

    /// Takes the value that is then passed to the function by reference.
    fn take(call: &Call) -> impl Future<Output = Result<Self::Held, Error>> + Send;

    /// Puts back the changes of the function, even if it failed.
    ///
    /// # Errors
    /// A failure counts as the handler's own failure.
    fn put_back(held: Self::Held, call: &Call) -> Result<(), Error>;

    /// What the function may write through this input; determines the generated rights.
    #[must_use]
    fn touches() -> Touches {
        Touches::nothing()
    }
}

/// A value that is its own [`Held`](InputMut::Held) data.
#[derive(Debug)]
pub struct Plain<T>(pub(crate) T);

impl<T> AsMut<T> for Plain<T> {
    fn as_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// The object of a call, for the kinds that have one.
pub(crate) fn subject(call: &Call) -> Result<&Subject, Error> {
    call.subject.as_ref().ok_or_else(|| {
        Error::from(format!("handler {} was called without an object", call.handler.id)).permanent()
    })
}
