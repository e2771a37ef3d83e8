//! Inputs about the operator: its state, clients, settings, and the current attempt.

use std::any::TypeId;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use kopf_core::invoke::Attempt;
use kopf_core::{Call, Settings};
use kopf_model::Timestamp;

use super::{Input, InputMut, Plain};
use crate::error::Error;
use crate::kind::{ActivityKind, Kind};

/// A value of the whole application, passed to the operator with `.state(...)`.
pub struct State<T>(Arc<T>);

/// The value passed to the handler with `param = ...`.
pub struct Param<T>(Arc<T>);

/// The time of this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(pub Timestamp);

/// What must exist before the operator starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A value of a type in the operator's state.
    State {
        /// The type.
        type_id: TypeId,
        /// The name of the type.
        type_name: &'static str,
    },
    /// Kinds of children that are watched for the handler.
    Children {
        /// The name of the children's type.
        type_name: &'static str,
    },
    /// An index among the operator's handlers.
    Index {
        /// The name of the index.
        name: &'static str,
    },
}

impl Requirement {
    /// Requires a value of this type in the state.
    #[must_use]
    pub fn state<T: 'static>() -> Self {
        Self::State { type_id: TypeId::of::<T>(), type_name: std::any::type_name::<T>() }
    }
}

macro_rules! shared {
    ($($type:ident),*) => {$(
        impl<T> Deref for $type<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }

        impl<T> Clone for $type<T> {
            fn clone(&self) -> Self {
                Self(Arc::clone(&self.0))
            }
        }

        impl<T: fmt::Debug> fmt::Debug for $type<T> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )*};
}

shared!(State, Param);

#[diagnostic::do_not_recommend]
impl<K: Kind, T: Send + Sync + 'static> Input<K> for State<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        call.operator.state.get().map(Self).ok_or_else(missing::<T>)
    }

    fn requires() -> Option<Requirement> {
        Some(Requirement::state::<T>())
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind, T: Send + Sync + 'static> Input<K> for Param<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        let param = call.handler.param.clone().and_then(|param| param.downcast().ok());
        param.map(Self).ok_or_else(|| {
            let type_name = std::any::type_name::<T>();
            let id = &call.handler.id;
            Error::from(format!("handler {id} has no parameter of type `{type_name}`")).permanent()
        })
    }
}

/// The client for the operator's cluster.
#[diagnostic::do_not_recommend]
impl<K: Kind> Input<K> for kube::Client {
    fn take(call: &Call) -> Result<Self, Error> {
        let client = call.operator.state.get::<Self>();
        client.map(|client| (*client).clone()).ok_or_else(missing::<Self>)
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind> Input<K> for Attempt {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(call.attempt)
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind> Input<K> for Now {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(Self(call.attempt.now))
    }
}

/// A copy of the settings at the time of the call.
#[diagnostic::do_not_recommend]
impl<K: Kind> Input<K> for Settings {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(call.operator.settings.read().clone())
    }
}

#[diagnostic::do_not_recommend]
impl<K: ActivityKind> InputMut<K> for Settings {
    type Held = Plain<Self>;

    async fn take(call: &Call) -> Result<Plain<Self>, Error> {
        Ok(Plain(call.operator.settings.read().clone()))
    }

    fn put_back(held: Plain<Self>, call: &Call) -> Result<(), Error> {
        *call.operator.settings.write() = held.0;
        Ok(())
    }
}

fn missing<T>() -> Error {
    let type_name = std::any::type_name::<T>();
    Error::from(format!(
        "the operator has no state of type `{type_name}`: add it with `.state(...)`"
    ))
    .permanent()
}
