//! Inputs of daemons and timers: the stop flag, and the current object.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::invoke::{Stop, StopReason};
use kopf_core::{Call, Occasion, Subject};
use kopf_model::Resource;

use super::change::wrong_occasion;
use super::{Input, subject};
use crate::error::Error;
use crate::kind::BackgroundKind;
use crate::object::FromObject;

/// The stop flag of a daemon or a timer.
///
/// ```no_run
/// # use kopf_handler::{Seconds, input::Stopped};
/// async fn watch_disk(stopped: Stopped) {
///     while !stopped.wait(10.secs()).await {
///         println!("still here");
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Stopped(Arc<dyn Stop>);

impl Stopped {
    /// Whether the handler should stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.reason().is_some()
    }

    /// Why the handler should stop, or `None` if it should continue.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        self.0.reason()
    }

    /// Waits for this time, or until the handler should stop; returns whether it should.
    pub async fn wait(&self, timeout: Duration) -> bool {
        self.0.wait(Some(timeout)).await;
        self.is_set()
    }

    /// Waits until the handler should stop.
    pub async fn requested(&self) {
        self.0.wait(None).await;
    }

    /// Waits for this time, or until the handler should stop, in functions that are not async.
    #[must_use]
    pub fn wait_blocking(&self, timeout: Duration) -> bool {
        self.0.wait_blocking(Some(timeout));
        self.is_set()
    }
}

#[diagnostic::do_not_recommend]
impl<K: BackgroundKind> Input<K> for Stopped {
    fn take(call: &Call) -> Result<Self, Error> {
        call.stopped.clone().map(Self).ok_or_else(|| wrong_occasion(call))
    }
}

/// The current object, no matter how long the handler has been running.
pub struct Live<T> {
    resource: Arc<Resource>,
    live: kopf_core::occasion::Live,
    view: PhantomData<fn() -> T>,
}

impl<T: FromObject> Live<T> {
    /// The newest known state.
    ///
    /// # Errors
    /// Fails if the object does not match the type.
    pub fn get(&self) -> Result<T, Error> {
        T::from_object(&Subject { resource: Arc::clone(&self.resource), object: self.live.get() })
    }
}

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        let resource = Arc::clone(&self.resource);
        Self { resource, live: self.live.clone(), view: PhantomData }
    }
}

#[diagnostic::do_not_recommend]
impl<K: BackgroundKind, T: FromObject> Input<K> for Live<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        let Occasion::Background { live } = &call.occasion else {
            return Err(wrong_occasion(call));
        };
        let resource = Arc::clone(&subject(call)?.resource);
        Ok(Self { resource, live: live.clone(), view: PhantomData })
    }
}
