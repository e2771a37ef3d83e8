//! Outcomes: what a handler may return, and how it is passed to the engine.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use kopf_core::{HandlerError, Output, Returned};
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::kind::{Cleanup, Convert, Index, Kind, Login, Probe, Startup, StoringKind};

/// A value that a handler of this kind may return, bare or in a `Result`.
#[diagnostic::on_unimplemented(
    message = "a `{HandlerKind}` handler cannot return `{Self}`",
    label = "not a result of `{HandlerKind}` handlers",
    note = "results of object handlers and probes are stored as JSON and implement `serde::Serialize`; webhooks, observers, startup and cleanup return nothing; logins return `LoginResult`; indexes return a map, pairs or one value; desired children are a `Vec<Child>`; conversions return the object in the other version"
)]
pub trait Outcome<HandlerKind: Kind> {
    /// The value in the form for the engine.
    ///
    /// # Errors
    /// Fails if the value cannot be serialized as JSON.
    fn into_output(self) -> Result<Output, Error>;
}

/// An error that a handler may return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot fail with `{Self}`",
    label = "not an error of handlers",
    note = "return `kopf::Result`, or a `Result` with any type that implements `std::error::Error`"
)]
pub trait Failure {
    /// The error in the form for handlers.
    fn into_error(self) -> Error;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Error>> Failure for E {
    fn into_error(self) -> Error {
        self.into()
    }
}

#[diagnostic::do_not_recommend]
impl<K: StoringKind, T: Serialize> Outcome<K> for T {
    fn into_output(self) -> Result<Output, Error> {
        stored(&self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Outcome<Probe> for T {
    fn into_output(self) -> Result<Output, Error> {
        stored(&self)
    }
}

/// The object in the target version.
#[diagnostic::do_not_recommend]
impl<T: Serialize> Outcome<Convert> for T {
    fn into_output(self) -> Result<Output, Error> {
        stored(&self)
    }
}

fn stored(value: &impl Serialize) -> Result<Output, Error> {
    Ok(match serde_json::to_value(value)? {
        Value::Null => Output::Nothing,
        value => Output::Json(value),
    })
}

macro_rules! returns_nothing {
    ($($kind:ident)*) => {$(
        impl Outcome<$kind> for () {
            fn into_output(self) -> Result<Output, Error> {
                Ok(Output::Nothing)
            }
        }
    )*};
}

use crate::kind::{Mutate, Observe, Validate};
returns_nothing!(Startup Cleanup Validate Mutate Observe);

/// Credentials of a login handler, opaque to everything except the cluster client.
#[derive(Clone)]
pub struct LoginResult(Arc<dyn Any + Send + Sync>);

impl LoginResult {
    /// Wraps credentials that the cluster client understands.
    pub fn new(credentials: impl Any + Send + Sync) -> Self {
        Self(Arc::new(credentials))
    }
}

impl Outcome<Login> for LoginResult {
    fn into_output(self) -> Result<Output, Error> {
        Ok(Output::Opaque(self.0))
    }
}

/// Credentials, if this handler has any.
impl Outcome<Login> for Option<LoginResult> {
    fn into_output(self) -> Result<Output, Error> {
        self.map_or(Ok(Output::Nothing), Outcome::<Login>::into_output)
    }
}

/// The result of an index function: the keys and values of one object.
///
/// A map or a list of pairs has many, a pair has one, and `None` keeps the previous entries of the
/// object.
#[diagnostic::on_unimplemented(
    message = "an index cannot be made of `{Self}`",
    label = "not keys and values",
    note = "return a map, a `Vec` of pairs, one pair `(key, value)`, or an `Option` of these"
)]
pub trait Entries {
    /// The keys, comparable as JSON.
    type Key: Serialize;
    /// The values.
    type Value: Send + Sync + 'static;

    /// The keys and values; `None` keeps the previous ones.
    fn entries(self) -> Option<Vec<(Self::Key, Self::Value)>>;
}

macro_rules! entries_of_collections {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<K: Serialize, V: Send + Sync + 'static, $($generics)*> Entries for $type {
            type Key = K;
            type Value = V;

            fn entries(self) -> Option<Vec<(K, V)>> {
                Some(self.into_iter().collect())
            }
        }
    )*};
}

entries_of_collections! {
    [S: BuildHasher] HashMap<K, V, S>;
    [] BTreeMap<K, V>;
    [] Vec<(K, V)>;
}

impl<K: Serialize, V: Send + Sync + 'static> Entries for (K, V) {
    type Key = K;
    type Value = V;

    fn entries(self) -> Option<Vec<(K, V)>> {
        Some(vec![self])
    }
}

impl<E: Entries> Entries for Option<E> {
    type Key = E::Key;
    type Value = E::Value;

    fn entries(self) -> Option<Vec<(E::Key, E::Value)>> {
        self.and_then(Entries::entries)
    }
}

/// Entries, or the reason why there are none.
impl<E: Entries, F> Entries for std::result::Result<E, F> {
    type Key = E::Key;
    type Value = E::Value;

    fn entries(self) -> Option<Vec<(E::Key, E::Value)>> {
        self.ok().and_then(Entries::entries)
    }
}

#[diagnostic::do_not_recommend]
impl<E: Entries> Outcome<Index> for E {
    fn into_output(self) -> Result<Output, Error> {
        let Some(entries) = self.entries() else { return Ok(Output::Nothing) };
        let erase = |(key, value)| {
            Ok((serde_json::to_value(key)?, Arc::new(value) as Arc<dyn Any + Send + Sync>))
        };
        Ok(Output::Entries(entries.into_iter().map(erase).collect::<Result<_, Error>>()?))
    }
}

/// Sorts the result of a function into success and failure; for use by the attributes only.
///
/// The inherent method for `Result` wins over the trait's for everything else. A trait alone could
/// not distinguish them, since a `Result` can be serialized as JSON too.
#[doc(hidden)]
pub struct Returning<R>(pub R);

impl<T, E> Returning<std::result::Result<T, E>> {
    #[doc(hidden)]
    pub fn finish<K: Kind>(self) -> Returned
    where
        T: Outcome<K>,
        E: Failure,
    {
        let value = self.0.map_err(|error| HandlerError::from(error.into_error()))?;
        value.into_output().map_err(HandlerError::from)
    }
}

#[doc(hidden)]
pub trait FinishPlain<R> {
    fn finish<K: Kind>(self) -> Returned
    where
        R: Outcome<K>;
}

impl<R> FinishPlain<R> for Returning<R> {
    fn finish<K: Kind>(self) -> Returned
    where
        R: Outcome<K>,
    {
        self.0.into_output().map_err(HandlerError::from)
    }
}
