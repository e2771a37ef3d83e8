//! Items used by the code that attributes generate in users' crates. No guarantees: it changes with
//! them.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::Error;
use crate::input::Param;
use crate::kind::Kind;
use crate::selector::TypedResource;

pub use kopf_core::filter::When;
pub use kopf_core::handler::{
    ConvertOptions, DaemonOptions, Delay, ErrorsMode, Need, TimerOptions, Touches, WebhookOptions,
    handler_id,
};
pub use kopf_core::{
    Call, Handler, HandlerError, HandlerKind, Invocation, MetaFilter, Returned, ValueFilter,
};
pub use kopf_model::{FieldPath, Selector, resource::SelectorName};
pub use serde_json::{Value, json};

pub use crate::declare::{Declaration, HandlerSet, function};
pub use crate::filter::{
    condition, delay, matching_resources, meta_matches, meta_matches_with, read_input,
    value_matches, value_matches_with,
};
pub use crate::input::{Input, InputMut, InputRef, Requirement};
pub use crate::outcome::{FinishPlain, Returning};
pub use crate::selector::{Definition, NoDefinition};

/// Returns an input that was taken, or the failure of the handler.
///
/// # Errors
/// Fails if the input fails.
pub fn taken<T>(outcome: Result<T, Error>) -> Result<T, HandlerError> {
    outcome.map_err(Into::into)
}

/// The same for handlers on threads.
///
/// # Errors
/// Fails if the input fails.
pub fn taken_blocking<T>(
    taking: impl Future<Output = Result<T, Error>>,
) -> Result<T, HandlerError> {
    futures::executor::block_on(taking).map_err(Into::into)
}

/// Puts an input back; the handler's own failure takes precedence over a failure here.
pub fn put_back<K: Kind, T: InputMut<K>>(
    held: T::Held,
    call: &Call,
    returned: Returned,
) -> Returned {
    let put = T::put_back(held, call).map_err(HandlerError::from);
    returned.and_then(|output| put.map(|()| output))
}

/// The children that a handler watches, as a list of types.
#[diagnostic::on_unimplemented(
    message = "the handler does not watch children of the type `{T}`",
    label = "add it to `children(...)`"
)]
pub trait Watches<T> {}

/// The requirements of an input by value; none if it is not an input, which another check reports.
pub struct Requires<K, T>(PhantomData<(K, T)>);

/// The requirements of an input by reference; none if it is not an input, which another check
/// reports.
pub struct RequiresRef<K, T>(PhantomData<(K, T)>);

/// What a mutable input touches; nothing if it is not an input, which another check reports.
pub struct RequiresMut<K, T>(PhantomData<(K, T)>);

pub trait RequiresNothing {
    fn find() -> Option<Requirement> {
        None
    }

    fn touches() -> Touches {
        Touches::nothing()
    }
}

impl<K: Kind, T: Input<K>> Requires<K, T> {
    #[must_use]
    pub fn find() -> Option<Requirement> {
        T::requires()
    }

    #[must_use]
    pub fn touches() -> Touches {
        T::touches()
    }
}

impl<K: Kind, T: InputMut<K>> RequiresMut<K, T> {
    #[must_use]
    pub fn touches() -> Touches {
        T::touches()
    }
}

impl<K, T> RequiresNothing for RequiresMut<K, T> {}

impl<K: Kind, T: InputRef<K>> RequiresRef<K, T> {
    #[must_use]
    pub fn find() -> Option<Requirement> {
        T::requires()
    }
}

impl<K, T> RequiresNothing for Requires<K, T> {}

impl<K, T> RequiresNothing for RequiresRef<K, T> {}

/// What the returned type touches: a value is stored in the status, nothing is not stored.
///
/// The inherent functions win over the trait's, as in [`Returning`].
pub struct Answered<R>(PhantomData<R>);

pub trait ReturnsValue {
    fn touches() -> Touches {
        Touches { status: true, ..Touches::nothing() }
    }
}

impl Answered<()> {
    #[must_use]
    pub fn touches() -> Touches {
        Touches::nothing()
    }
}

impl<E> Answered<Result<(), E>> {
    #[must_use]
    pub fn touches() -> Touches {
        Touches::nothing()
    }
}

impl<R> ReturnsValue for Answered<R> {}

/// What a conversion to a type may return: exactly that type.
#[diagnostic::on_unimplemented(
    message = "a conversion to `{T}` cannot return `{Self}`",
    label = "not what `to = ...` says"
)]
pub trait Becomes<T> {}

impl<T> Becomes<T> for T {}

/// Checks the return type of a conversion, bare or in a `Result`.
///
/// The inherent function wins over the trait's, as in [`Returning`].
pub struct Converted<R>(PhantomData<R>);

pub trait ConvertedPlain<R> {
    fn check<T>()
    where
        R: Becomes<T>,
    {
    }
}

impl<R, E> Converted<Result<R, E>> {
    pub fn check<T>()
    where
        R: Becomes<T>,
    {
    }
}

impl<R> ConvertedPlain<R> for Converted<R> {}

/// The same resource in another version.
#[must_use]
pub fn in_version(selector: &Selector, version: &str) -> Selector {
    Selector { version: Some(version.to_owned()), ..selector.clone() }
}

pub fn selector_of<K: TypedResource>() -> Selector {
    K::selector()
}

/// The type of value that `Param<T>` takes.
pub trait WantsParam {
    type Value: Send + Sync + 'static;
}

impl<T: Send + Sync + 'static> WantsParam for Param<T> {
    type Value = T;
}

pub fn param<P: WantsParam>(value: P::Value) -> Arc<dyn Any + Send + Sync> {
    Arc::new(value)
}

pub fn future(future: impl Future<Output = Returned> + Send + 'static) -> Invocation {
    Invocation::Future(Box::pin(future))
}

pub fn inline(function: impl FnOnce() -> Returned + Send + 'static) -> Invocation {
    Invocation::Future(Box::pin(std::future::ready(function())))
}

pub fn blocking(function: impl FnOnce() -> Returned + Send + 'static) -> Invocation {
    Invocation::Blocking(Box::new(function))
}
