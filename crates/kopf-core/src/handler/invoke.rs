//! The contract between the engine and user code.
//!
//! The engine knows handlers as `dyn Invoke` only. Everything a handler may look at or change comes
//! in a [`Call`]; everything it says comes back as [`Returned`].

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

/// User code, erased.
pub trait Invoke: Send + Sync + 'static {
    /// Prepares one invocation; the engine decides where it runs.
    fn invoke(&self, call: Call) -> Invocation;

    /// The same with a token: the handler counts as running for as long as the token is held.
    ///
    /// A future that is dropped in the middle is cancelled. Code that goes on nevertheless, such as
    /// a coroutine of another event loop that is being cancelled, keeps the token until its end.
    fn invoke_guarded(&self, call: Call, alive: Arc<dyn Any + Send + Sync>) -> Invocation {
        drop(alive);
        self.invoke(call)
    }

    /// Which function this is: the same function registered twice under one id runs once per cause.
    ///
    /// The address of this value by default; adaptors that wrap one function several times return
    /// something of the function itself.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }
}

/// One prepared invocation.
pub enum Invocation {
    /// Polled on the engine's reactor.
    Future(BoxFuture<Returned>),
    /// Run on the bounded pool for blocking handlers.
    Blocking(Box<dyn FnOnce() -> Returned + Send>),
}

/// What a handler says when it is over.
pub type Returned = Result<Output, HandlerError>;

/// A callback that fails within a handler fails the handler.
impl From<CallbackError> for HandlerError {
    fn from(error: CallbackError) -> Self {
        let CallbackError { message, object } = error;
        let error = Self::Arbitrary { message, details: None };
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
    /// To be tried again; without a delay, at once.
    #[error("{message}")]
    Temporary {
        /// What went wrong.
        message: String,
        /// When to try again.
        delay: Option<Duration>,
    },
    /// Never to be tried again.
    #[error("{message}")]
    Permanent {
        /// What went wrong.
        message: String,
    },
    /// Treated as the handler's error mode says.
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
        /// The HTTP code of the answer.
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
    /// One of the others, with the error object of the front end, which gets it back as it is.
    #[error("{error}")]
    WithObject {
        /// What the error means.
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

    /// The original, if the front end has given it.
    #[must_use]
    pub fn object(&self) -> Option<&ErrorObject> {
        match self {
            Self::WithObject { object, .. } => Some(object),
            _ => None,
        }
    }
}

/// Everything one invocation may look at or change.
#[derive(Clone)]
pub struct Call {
    /// The handler that is called.
    pub handler: Arc<Handler>,
    /// The object; `None` for activities.
    pub subject: Option<Subject>,
    /// What happened; for field handlers, reduced to the field.
    pub occasion: Occasion,
    /// The count and times of attempts.
    pub attempt: Attempt,
    /// The changes to the object; shared by all handlers of a cycle, own for daemons and timers.
    pub patch: Arc<Mutex<Patch>>,
    /// Values kept in memory for the object; for activities, of the whole operator.
    pub memo: Arc<Extensions>,
    /// All indexes of the operator.
    pub indexes: Arc<Indexes>,
    /// The stop flag of daemons and timers.
    pub stopped: Option<Arc<dyn Stop>>,
    /// Sub-handlers of changing handlers.
    pub sub_handlers: Option<Arc<dyn SubHandlers>>,
    /// The children of the object, where they are watched.
    pub family: Option<Arc<dyn Family>>,
    /// Warnings for the user who asks for admission.
    pub warnings: Arc<Mutex<Vec<String>>>,
    /// What belongs to the whole operator.
    pub operator: Arc<OperatorContext>,
}

/// The count and times of attempts.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// How many attempts were finished before this one.
    pub retry: u32,
    /// When the first attempt began.
    pub started: Timestamp,
    /// The moment of this call.
    pub now: Timestamp,
}

/// What belongs to the whole operator, the same for every call.
pub struct OperatorContext {
    /// The settings; startup handlers change them, everybody reads them lazily.
    pub settings: RwLock<Settings>,
    /// The application's state and the cluster clients, by type.
    pub state: Extensions,
    /// The way to post Kubernetes events.
    pub recorder: Arc<dyn Record>,
}

/// Posts Kubernetes events about objects; never blocks and never fails.
pub trait Record: Send + Sync {
    /// Queues one event: type (`Normal`, `Warning`), reason and message.
    fn record(&self, about: &Subject, kind: &str, reason: &str, message: &str);
}

/// The stop flag of a daemon or timer.
pub trait Stop: Send + Sync {
    /// The reasons to stop so far, or `None` while it should go on.
    fn reason(&self) -> Option<StopReason>;
    /// Waits until the flag is set or the time is over.
    fn wait(&self, timeout: Option<Duration>) -> BoxFuture<()>;
    /// The same for blocking code.
    fn wait_blocking(&self, timeout: Option<Duration>);
}

/// Why a daemon is to stop; several reasons may hold.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct StopReason(u8);

/// Registers and runs sub-handlers of the current handler.
pub trait SubHandlers: Send + Sync {
    /// Adds a sub-handler; its id is prefixed with the parent's.
    fn register(&self, handler: Handler);
    /// Runs what is registered, as far as it is due.
    ///
    /// Fails with [`HandlerError::SubHandlers`] when something is left for later, which the handler
    /// should pass on. Called by the engine after the handler, unless the handler called it.
    fn execute(&self) -> BoxFuture<Result<(), HandlerError>>;
    /// The ids registered so far.
    fn ids(&self) -> Vec<HandlerId>;
    /// Tells of sub-handlers that the front end runs by itself: their progress goes away with that
    /// of the parent.
    fn note(&self, ids: Vec<HandlerId>);
}

/// The children of one object, as far as they are watched: at least as new as our own writes.
pub trait Family: Send + Sync {
    /// The resource of this group, version and kind, if its children are watched.
    fn resource(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>>;
    /// The resources that a selector names, as far as their children are watched.
    fn resources(&self, selector: &Selector) -> Vec<Arc<Resource>>;
    /// The children of a resource, ordered by namespace and name; `None` while they are not listed.
    fn children(&self, resource: &Resource) -> Option<Vec<Object>>;
    /// Takes in the answer to a write, so that no handler has to wait for its echo.
    fn note(&self, resource: &Arc<Resource>, child: Object);
    /// Who writes the fields of children, for the server.
    fn field_manager(&self) -> String;
}

/// Values by type: the operator's state, an object's memo.
#[derive(Default)]
pub struct Extensions(RwLock<Vec<Extension>>);

#[derive(Clone)]
struct Extension {
    value: Arc<dyn Any + Send + Sync>,
    /// How forks come to a value of their own; without it they share this one.
    copy: Option<Arc<CopyFn>>,
    /// The value is still the one of the origin, to be copied when it is first asked for.
    is_borrowed: bool,
}

type CopyFn = dyn Fn(&(dyn Any + Send + Sync)) -> Arc<dyn Any + Send + Sync> + Send + Sync;

/// The indexes of the operator, readable by all handlers.
#[derive(Default)]
pub struct Indexes(RwLock<std::collections::HashMap<HandlerId, Arc<dyn IndexView>>>);

/// One index as handlers read it: from JSON keys to the values of all objects under that key.
pub trait IndexView: Send + Sync {
    /// The values under a key.
    fn get(&self, key: &Value) -> Vec<Arc<dyn Any + Send + Sync>>;
    /// All keys.
    fn keys(&self) -> Vec<Value>;
}

/// By names, such as `RESOURCE_DELETED|DAEMON_SIGNALLED`.
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
    /// The object does not match the filters any more.
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

    /// The value; a borrowed one is replaced by its copy, for which the list must be locked.
    fn own<T: Send + Sync + 'static>(&mut self) -> Option<Arc<T>> {
        if let (true, Some(copy)) = (self.is_borrowed, &self.copy) {
            self.value = copy(&*self.value);
            self.is_borrowed = false;
        }
        Arc::clone(&self.value).downcast().ok()
    }
}

impl Extensions {
    /// The value of a type, if it was put in.
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

    /// Puts a value in, in place of the former one of its type.
    pub fn insert<T: Send + Sync + 'static>(&self, value: Arc<T>) {
        let mut values = self.0.write();
        let former: Vec<Extension> = values.extract_if(.., |other| other.is::<T>()).collect();
        values.push(Extension { value, copy: None, is_borrowed: false });
        drop(values);
        // Not under the lock: it may look for others when it is dropped.
        drop(former);
    }

    /// The value of a type, made at the first use.
    pub fn get_or_insert_with<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.get_or_make(make, None)
    }

    /// The value of a type, made at the first use, of which every fork has a copy.
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

    /// Whether both have the very same values, so that one can stand for the other.
    #[must_use]
    pub fn holds_same(&self, other: &Self) -> bool {
        let (these, those) = (self.0.read(), other.0.read());
        these.len() == those.len()
            && these
                .iter()
                .zip(those.iter())
                .all(|(this, that)| Arc::ptr_eq(&this.value, &that.value))
    }

    /// The memo of a new object, which starts as the operator's: values that know how are copied
    /// when they are first asked for, the others are shared.
    #[must_use]
    pub fn fork(&self) -> Self {
        let fork =
            |value: &Extension| Extension { is_borrowed: value.copy.is_some(), ..value.clone() };
        Self(RwLock::new(self.0.read().iter().map(fork).collect()))
    }
}

impl Indexes {
    /// The index of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn IndexView>> {
        self.0.read().get(name).cloned()
    }

    /// Adds an index; called by the engine before the startup handlers.
    pub fn insert(&self, name: HandlerId, index: Arc<dyn IndexView>) {
        self.0.write().insert(name, index);
    }
}

/// What a panic said.
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
