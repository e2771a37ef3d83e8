//! The contract between the engine and user code.
//!
//! The engine knows handlers only as `dyn Invoke`. A [`Call`] has everything that a handler may
//! read or modify; [`Returned`] has its result.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kopf_model::{Object, Patch, Resource, Selector, Timestamp};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::handler::{Handler, HandlerId};
use crate::occasion::{Occasion, Subject};
use crate::settings::Settings;

pub use kopf_model::{CallbackError, ErrorObject};

/// A boxed future that can move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// User code, type-erased.
pub trait Invoke: Send + Sync + 'static {
    /// Prepares one invocation; the engine decides where it runs.
    fn invoke(&self, call: Call) -> Invocation;

    /// Like [`invoke`](Self::invoke), with a token: the handler counts as running while the token
    /// is held.
    ///
    /// Dropping the future cancels the handler. Code that continues nevertheless, such as a
    /// coroutine of another event loop during its cancellation, holds the token until it ends.
    fn invoke_guarded(&self, call: Call, alive: Arc<dyn Any + Send + Sync>) -> Invocation {
        drop(alive);
        self.invoke(call)
    }

    /// Whether the handler is cancelled by [`StopReason::DAEMON_CANCELLED`], and its future ends with
    /// the outcome of that, instead of being dropped.
    ///
    /// For daemons that may finish their work when they are cancelled, such as coroutines of another
    /// event loop.
    fn cancels_itself(&self) -> bool {
        false
    }

    /// Identifies the function: the same function registered twice under one id runs once per
    /// cause.
    ///
    /// The address of this value by default; adaptors that wrap one function several times return
    /// something that identifies the function itself.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }
}

/// One prepared invocation.
pub enum Invocation {
    /// Polled on the engine's reactor.
    Future(BoxFuture<Returned>),
    /// Runs on the bounded pool for blocking handlers.
    Blocking(Box<dyn FnOnce() -> Returned + Send>),
}

/// The result of a handler.
pub type Returned = Result<Output, HandlerError>;

/// A callback that fails within a handler fails the handler.
impl From<CallbackError> for HandlerError {
    fn from(error: CallbackError) -> Self {
        let CallbackError { message, object, details } = error;
        let error = Self::Arbitrary { message, details };
        match object {
            Some(object) => Self::WithObject { error: Box::new(error), object },
            None => error,
        }
    }
}

/// The result of a successful handler.
#[derive(Clone, Default)]
pub enum Output {
    /// Nothing to store.
    #[default]
    Nothing,
    /// A value for the status (or the entries of an index, when it is a map).
    Json(Value),
    /// Typed entries of an index: key and value.
    Entries(Vec<(Value, Arc<dyn Any + Send + Sync>)>),
    /// A value that only the front-end understands, such as credentials of a login handler.
    Opaque(Arc<dyn Any + Send + Sync>),
}

/// How a handler failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HandlerError {
    /// Retry; without a delay, at once.
    #[error("{message}")]
    Temporary {
        /// What went wrong.
        message: String,
        /// When to try again.
        delay: Option<Duration>,
    },
    /// Do not retry.
    #[error("{message}")]
    Permanent {
        /// What went wrong.
        message: String,
    },
    /// Treated according to the handler's error mode.
    #[error("{message}")]
    Arbitrary {
        /// What went wrong.
        message: String,
        /// The chain of causes or the traceback, for the log.
        details: Option<String>,
    },
    /// An admission request is denied.
    #[error("{message}")]
    Denied {
        /// The message for the user.
        message: String,
        /// The HTTP code of the response.
        code: u16,
    },
    /// Some sub-handlers are not finished yet.
    #[error("some sub-handlers are not finished")]
    SubHandlers {
        /// When the first of them is due.
        delay: Option<Duration>,
    },
    /// The invocation was cancelled.
    #[error("the handler was cancelled")]
    Cancelled,
    /// One of the other errors with the original error object of the front end, which gets it back
    /// unchanged.
    #[error("{error}")]
    WithObject {
        /// The error.
        error: Box<HandlerError>,
        /// The original.
        object: ErrorObject,
    },
}

impl HandlerError {
    /// The same error with its original.
    #[must_use]
    pub fn with_object(self, object: Arc<dyn Any + Send + Sync>) -> Self {
        Self::WithObject { error: Box::new(self), object: ErrorObject(object) }
    }

    /// The original, if the front end provided it.
    #[must_use]
    pub fn object(&self) -> Option<&ErrorObject> {
        match self {
            Self::WithObject { object, .. } => Some(object),
            _ => None,
        }
    }
}

/// Everything that an invocation may read or modify.
#[derive(Clone)]
pub struct Call {
    /// The handler that is called.
    pub handler: Arc<Handler>,
    /// The object; `None` for activities.
    pub subject: Option<Subject>,
    /// What happened; for field handlers, reduced to the field.
    pub occasion: Occasion,
    /// The number and times of attempts.
    pub attempt: Attempt,
    /// The changes to the object; shared by all handlers of a cycle, separate for daemons and
    /// timers.
    pub patch: Arc<Mutex<Patch>>,
    /// Values kept in memory for the object; for activities, those of the whole operator.
    pub memo: Arc<Extensions>,
    /// All indexes of the operator.
    pub indexes: Arc<Indexes>,
    /// The stop flag of daemons and timers.
    pub stopped: Option<Arc<dyn Stop>>,
    /// Sub-handlers of changing handlers.
    pub sub_handlers: Option<Arc<dyn SubHandlers>>,
    /// The children of the object, where they are watched.
    pub family: Option<Arc<dyn Family>>,
    /// Warnings for the user who sent the admission request; only for admission handlers.
    pub warnings: Option<Arc<Mutex<Vec<String>>>>,
    /// The context of the whole operator.
    pub operator: Arc<OperatorContext>,
}

/// The number and times of attempts.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// How many attempts were finished before this one.
    pub retry: u32,
    /// When the first attempt began.
    pub started: Timestamp,
    /// The time of this call.
    pub now: Timestamp,
}

/// The context of the whole operator, the same for every call.
pub struct OperatorContext {
    /// The settings; startup handlers change them, all others read them when needed.
    pub settings: RwLock<Settings>,
    /// The application's state and the cluster clients, by type.
    pub state: Extensions,
    /// Posts Kubernetes events.
    pub recorder: Arc<dyn Record>,
}

/// Posts Kubernetes events about objects; never blocks and never fails.
pub trait Record: Send + Sync {
    /// Queues one event: type (`Normal`, `Warning`), reason and message.
    fn record(&self, about: &Subject, kind: &str, reason: &str, message: &str);
}

/// The stop flag of a daemon or timer.
pub trait Stop: Send + Sync {
    /// The reasons to stop so far, or `None` if it should continue.
    fn reason(&self) -> Option<StopReason>;
    /// Waits until the flag is set or the timeout expires.
    fn wait(&self, timeout: Option<Duration>) -> BoxFuture<()>;
    /// The same for blocking code.
    fn wait_blocking(&self, timeout: Option<Duration>);
    /// Waits until this is one of the reasons.
    fn wait_for(&self, reason: StopReason) -> BoxFuture<()>;
}

/// Why a daemon should stop; there can be several reasons.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct StopReason(u8);

/// Registers and runs sub-handlers of the current handler.
pub trait SubHandlers: Send + Sync {
    /// Adds a sub-handler; its id is prefixed with the parent's.
    fn register(&self, handler: Handler);
    /// Runs the registered sub-handlers that are due.
    ///
    /// Fails with [`HandlerError::SubHandlers`] if some are not finished; the handler should return
    /// this error. The engine calls this after the handler, unless the handler has called it.
    fn execute(&self) -> BoxFuture<Result<(), HandlerError>>;
    /// The ids registered so far.
    fn ids(&self) -> Vec<HandlerId>;
    /// Records sub-handlers that the front end runs by itself: their progress is removed with that
    /// of the parent.
    fn note(&self, ids: Vec<HandlerId>);
}

/// The watched children of one object, at least as new as our own writes.
pub trait Family: Send + Sync {
    /// The resource of this group, version and kind, if its children are watched.
    fn resource(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>>;
    /// The resources that a selector names, if their children are watched.
    fn resources(&self, selector: &Selector) -> Vec<Arc<Resource>>;
    /// The children of a resource, ordered by namespace and name; `None` until they are listed.
    fn children(&self, resource: &Resource) -> Option<Vec<Object>>;
    /// Processes the response to a write, so that no handler must wait for its event.
    fn note(&self, resource: &Arc<Resource>, child: Object);
    /// The field manager for children.
    fn field_manager(&self) -> String;
}

/// Values by type: the operator's state, an object's memo.
#[derive(Default)]
pub struct Extensions(RwLock<Vec<Extension>>);

#[derive(Clone)]
struct Extension {
    value: Arc<dyn Any + Send + Sync>,
    /// How forks get their own value; without it they share this one.
    copy: Option<Arc<CopyFn>>,
    /// Whether the value is still that of the origin, to be copied on first access.
    is_borrowed: bool,
}

type CopyFn = dyn Fn(&(dyn Any + Send + Sync)) -> Arc<dyn Any + Send + Sync> + Send + Sync;

/// The indexes of the operator, readable by all handlers.
#[derive(Default)]
pub struct Indexes(RwLock<std::collections::HashMap<HandlerId, Arc<dyn IndexView>>>);

/// An index as handlers read it: maps JSON keys to the values of all objects with that key.
pub trait IndexView: Send + Sync {
    /// The values under a key.
    fn get(&self, key: &Value) -> Vec<Arc<dyn Any + Send + Sync>>;
    /// How many values are under a key.
    fn count(&self, key: &Value) -> usize {
        self.get(key).len()
    }
    /// All keys.
    fn keys(&self) -> Vec<Value>;
}

/// Formatted as names, such as `RESOURCE_DELETED|DAEMON_SIGNALLED`.
impl std::fmt::Debug for StopReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_empty() {
            return formatter.write_str("NONE");
        }
        let held = StopReason::NAMES.iter().filter(|(reason, _)| self.contains(*reason));
        let names: Vec<&str> = held.map(|(_, name)| *name).collect();
        formatter.write_str(&names.join("|"))
    }
}

impl StopReason {
    const NAMES: [(Self, &str); 8] = [
        (Self::DONE, "DONE"),
        (Self::FILTERS_MISMATCH, "FILTERS_MISMATCH"),
        (Self::RESOURCE_DELETED, "RESOURCE_DELETED"),
        (Self::OPERATOR_PAUSING, "OPERATOR_PAUSING"),
        (Self::OPERATOR_EXITING, "OPERATOR_EXITING"),
        (Self::DAEMON_SIGNALLED, "DAEMON_SIGNALLED"),
        (Self::DAEMON_CANCELLED, "DAEMON_CANCELLED"),
        (Self::DAEMON_ABANDONED, "DAEMON_ABANDONED"),
    ];

    /// The daemon has ended.
    pub const DONE: Self = Self(1);
    /// The object no longer matches the filters.
    pub const FILTERS_MISMATCH: Self = Self(2);
    /// The object is deleted.
    pub const RESOURCE_DELETED: Self = Self(4);
    /// The operator pauses.
    pub const OPERATOR_PAUSING: Self = Self(8);
    /// The operator exits.
    pub const OPERATOR_EXITING: Self = Self(16);
    /// The daemon was asked to stop.
    pub const DAEMON_SIGNALLED: Self = Self(32);
    /// The daemon was cancelled.
    pub const DAEMON_CANCELLED: Self = Self(64);
    /// The daemon did not stop in time.
    pub const DAEMON_ABANDONED: Self = Self(128);

    /// Both reasons.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of the other's reasons hold.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The reasons of this set without those of the other.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// One bit per reason, in the order of Kopf's flags.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether there is no reason.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Attempt {
    /// The time since the first attempt.
    #[must_use]
    pub fn runtime(&self) -> Duration {
        Duration::try_from(self.now.duration_since(self.started)).unwrap_or_default()
    }
}

impl Extension {
    fn is<T: 'static>(&self) -> bool {
        (*self.value).is::<T>()
    }

    /// The value; a borrowed one is replaced by its copy, which requires a lock on the list.
    fn own<T: Send + Sync + 'static>(&mut self) -> Option<Arc<T>> {
        if let (true, Some(copy)) = (self.is_borrowed, &self.copy) {
            self.value = copy(&*self.value);
            self.is_borrowed = false;
        }
        Arc::clone(&self.value).downcast().ok()
    }
}

impl Extensions {
    /// The value of a type, if there is one.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        {
            let values = self.0.read();
            let found = values.iter().find(|value| value.is::<T>())?;
            if !found.is_borrowed {
                return Arc::clone(&found.value).downcast().ok();
            }
        }
        self.0.write().iter_mut().find(|value| value.is::<T>())?.own()
    }

    /// Stores a value, replacing the previous one of its type.
    pub fn insert<T: Send + Sync + 'static>(&self, value: Arc<T>) {
        let mut values = self.0.write();
        let former: Vec<Extension> = values.extract_if(.., |other| other.is::<T>()).collect();
        values.push(Extension { value, copy: None, is_borrowed: false });
        drop(values);
        // Not under the lock: its destructor may access other values.
        drop(former);
    }

    /// The value of a type, created on first use.
    pub fn get_or_insert_with<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.get_or_make(make, None)
    }

    /// The value of a type, created on first use; every fork gets a copy.
    pub fn get_or_insert_copied<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> T,
        copy: fn(&T) -> T,
    ) -> Arc<T> {
        let copy = move |value: &(dyn Any + Send + Sync)| {
            let value = value.downcast_ref().expect("the value keeps its type");
            Arc::new(copy(value)) as Arc<dyn Any + Send + Sync>
        };
        self.get_or_make(make, Some(Arc::new(copy)))
    }

    fn get_or_make<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> T,
        copy: Option<Arc<CopyFn>>,
    ) -> Arc<T> {
        if let Some(value) = self.get() {
            return value;
        }
        let mut values = self.0.write();
        if let Some(value) =
            values.iter_mut().find(|value| value.is::<T>()).and_then(Extension::own)
        {
            return value;
        }
        let made = Arc::new(make());
        let value = Arc::clone(&made) as Arc<dyn Any + Send + Sync>;
        values.push(Extension { value, copy, is_borrowed: false });
        made
    }

    /// Whether both have the very same values, so that one can replace the other.
    #[must_use]
    pub fn holds_same(&self, other: &Self) -> bool {
        let (these, those) = (self.0.read(), other.0.read());
        these.len() == those.len()
            && these
                .iter()
                .zip(those.iter())
                .all(|(this, that)| Arc::ptr_eq(&this.value, &that.value))
    }

    /// The memo of a new object, which starts as the operator's: values that can be copied are
    /// copied on first access, the others are shared.
    #[must_use]
    pub fn fork(&self) -> Self {
        let fork =
            |value: &Extension| Extension { is_borrowed: value.copy.is_some(), ..value.clone() };
        Self(RwLock::new(self.0.read().iter().map(fork).collect()))
    }
}

impl Indexes {
    /// The index with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn IndexView>> {
        self.0.read().get(name).cloned()
    }

    /// Adds an index; called by the engine before the startup handlers.
    pub fn insert(&self, name: HandlerId, index: Arc<dyn IndexView>) {
        self.0.write().insert(name, index);
    }
}

/// The message of a panic.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests;
