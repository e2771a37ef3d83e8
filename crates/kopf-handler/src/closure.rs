//! Handlers made of closures, for tiny operators, tests and registration at run time.
//!
//! Closures take their inputs by value, since a future cannot borrow from its caller.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::{ErrorsMode, Retrying, Touches, WebhookOptions};
use kopf_core::{
    Call, Handler, HandlerError, HandlerKind, Invocation, Invoke, MetaFilter, Returned, ValueFilter,
};
use kopf_model::Selector;
use kopf_model::selector::SelectorError;

use crate::declare::Declaration;
use crate::error::Error;
use crate::filter::{self, Condition};
use crate::input::{Input, Requirement};
use crate::kind::{self, Kind};
use crate::outcome::{Failure, Outcome};

/// A closure that can be a handler of a kind.
#[diagnostic::on_unimplemented(
    message = "this closure cannot be a `{HandlerKind}` handler",
    label = "not a `{HandlerKind}` handler",
    note = "its parameters are inputs taken by value with their types, as in `|name: Name| async move {{ ... }}`, and it returns nothing or a `kopf::Result`"
)]
pub trait HandlerFn<HandlerKind: Kind, Inputs>: Send + Sync + 'static {
    /// Calls the closure with its inputs.
    fn call(&self, call: &Call) -> Invocation;
    /// What its inputs require.
    fn requires() -> Vec<Requirement>;
    /// What the engine may write for it.
    fn touches() -> Touches;
}

/// What a closure may return: nothing, or a `Result`.
#[diagnostic::on_unimplemented(
    message = "a closure for `{HandlerKind}` cannot return `{Self}`",
    note = "return nothing, or a `kopf::Result` of a value"
)]
pub trait Answer<HandlerKind: Kind> {
    /// The answer as the engine gets it.
    ///
    /// # Errors
    /// The failure of the closure.
    fn into_returned(self) -> Returned;

    /// Whether there is a value, which is stored in the status.
    #[must_use]
    fn has_value() -> bool;
}

impl<K: Kind> Answer<K> for ()
where
    (): Outcome<K>,
{
    fn into_returned(self) -> Returned {
        Outcome::<K>::into_output(self).map_err(HandlerError::from)
    }

    fn has_value() -> bool {
        false
    }
}

impl<K: Kind, T: Outcome<K>, E: Failure> Answer<K> for Result<T, E> {
    fn into_returned(self) -> Returned {
        let value = self.map_err(|error| HandlerError::from(error.into_error()))?;
        value.into_output().map_err(HandlerError::from)
    }

    fn has_value() -> bool {
        // Only types without borrowed parts have an id, so the name has to do.
        std::any::type_name::<T>() != std::any::type_name::<()>()
    }
}

macro_rules! closures {
    ($($input:ident)*) => {
        impl<K, F, Fut, $($input),*> HandlerFn<K, ($($input,)*)> for F
        where
            K: Kind,
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            Fut::Output: Answer<K>,
            $($input: Input<K>,)*
        {
            fn call(&self, call: &Call) -> Invocation {
                // Closures without inputs look at nothing.
                let _ = call;
                let start = || Ok::<_, Error>(self($($input::take(call)?),*));
                match start() {
                    Ok(future) => Invocation::Future(Box::pin(async move {
                        future.await.into_returned()
                    })),
                    Err(error) => {
                        Invocation::Future(Box::pin(std::future::ready(Err(error.into()))))
                    }
                }
            }

            fn requires() -> Vec<Requirement> {
                let all: Vec<Option<Requirement>> = vec![$($input::requires()),*];
                all.into_iter().flatten().collect()
            }

            fn touches() -> Touches {
                let status = <Fut::Output as Answer<K>>::has_value();
                let answer = Touches { status, ..Touches::nothing() };
                let inputs: &[Touches] = &[$($input::touches()),*];
                inputs.iter().fold(answer, |all, one| all.or(*one))
            }
        }
    };
}

closures!();
closures!(A);
closures!(A B);
closures!(A B C);
closures!(A B C D);
closures!(A B C D E);
closures!(A B C D E F1);
closures!(A B C D E F1 G);
closures!(A B C D E F1 G H);

struct Erased<K, Inputs, F>(F, PhantomData<fn(K, Inputs)>);

impl<K: Kind, Inputs: 'static, F: HandlerFn<K, Inputs>> Invoke for Erased<K, Inputs, F> {
    fn invoke(&self, call: Call) -> Invocation {
        self.0.call(&call)
    }
}

/// Which resources a handler is for, as texts or as a ready selector.
pub trait ForResources {
    /// The selector.
    ///
    /// # Errors
    /// Fails when the texts do not name a resource.
    fn into_selector(self) -> Result<Selector, SelectorError>;
}

/// `plural`, `plural.group`, `plural.version.group`, a kind, a short name; `*` is everything.
impl ForResources for &str {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Selector::parse(&[self])
    }
}

/// Group and plural, or `group/version` and plural.
impl ForResources for (&str, &str) {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Selector::parse(&[self.0, self.1])
    }
}

/// Group, version and plural.
impl ForResources for (&str, &str, &str) {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Selector::parse(&[self.0, self.1, self.2])
    }
}

impl ForResources for Selector {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Ok(self)
    }
}

/// A closure as a handler, with its options.
///
/// ```
/// use kopf_handler::{Name, Seconds, closure};
///
/// let handler = closure::create("kopfexamples", |name: Name| async move {
///     println!("hello, {name}");
/// });
/// let handler = handler.id("greet").retries(3).backoff(5.secs());
/// ```
#[derive(Clone, Debug)]
#[must_use = "give it to an operator"]
pub struct Closure(Declaration);

impl Closure {
    fn new<K: Kind, I: 'static>(
        id: &str,
        kind: HandlerKind,
        function: impl HandlerFn<K, I>,
    ) -> Self {
        fn look<K: Kind, I, F: HandlerFn<K, I>>(_: &F) -> (Vec<Requirement>, Touches) {
            (F::requires(), F::touches())
        }
        let (requires, touches) = look(&function);
        let invoke = Arc::new(Erased::<K, I, _>(function, PhantomData));
        let handler = Handler { touches, ..Handler::new(id, kind, invoke) };
        Self(Declaration { handler, requires })
    }

    /// The same handler for some resources.
    ///
    /// # Panics
    /// Panics when the texts do not name a resource; they are part of the program.
    fn of(mut self, resources: impl ForResources) -> Self {
        match resources.into_selector() {
            Ok(selector) => self.0.handler.selector = Some(selector),
            Err(error) => panic!("handler {}: {error}", self.0.handler.id),
        }
        self
    }

    /// The id, under which progress and results are stored.
    pub fn id(mut self, id: &str) -> Self {
        self.0.handler.id = id.into();
        self
    }

    /// How many attempts there are at most.
    pub fn retries(mut self, retries: u32) -> Self {
        self.0.handler.retrying.retries = Some(retries);
        self
    }

    /// The pause after arbitrary errors.
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.0.handler.retrying.backoff = Some(backoff);
        self
    }

    /// The total time since the first attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.handler.retrying.timeout = Some(timeout);
        self
    }

    /// How arbitrary errors are treated.
    pub fn errors(mut self, mode: ErrorsMode) -> Self {
        self.0.handler.retrying = Retrying { errors: Some(mode), ..self.0.handler.retrying };
        self
    }

    /// A condition on a label.
    pub fn label(mut self, key: &str, filter: MetaFilter) -> Self {
        self.0.handler.filters.labels.push((key.to_owned(), filter));
        self
    }

    /// A condition on an annotation.
    pub fn annotation(mut self, key: &str, filter: MetaFilter) -> Self {
        self.0.handler.filters.annotations.push((key.to_owned(), filter));
        self
    }

    /// A condition on the object.
    pub fn when<Look>(mut self, condition: impl Condition<Look>) -> Self {
        self.0.handler.filters.when = Some(filter::condition(condition));
        self
    }

    /// The field of interest.
    pub fn field(mut self, path: &str) -> Self {
        self.0.handler.filters.field = Some(path.into());
        self
    }

    /// A condition on the field of interest.
    pub fn value(mut self, filter: ValueFilter) -> Self {
        self.0.handler.filters.value = Some(filter);
        self
    }

    /// A value for the input `Param<T>`.
    pub fn param<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.0.handler.param = Some(Arc::new(value));
        self
    }
}

impl From<Closure> for Declaration {
    fn from(closure: Closure) -> Self {
        closure.0
    }
}

macro_rules! object_handlers {
    ($($(#[$doc:meta])* $name:ident = $marker:ident, $kind:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        /// Panics when the texts do not name a resource; they are part of the program.
        pub fn $name<Inputs: 'static>(
            resources: impl ForResources,
            function: impl HandlerFn<kind::$marker, Inputs>,
        ) -> Closure {
            Closure::new(stringify!($name), $kind, function).of(resources)
        }
    )*};
}

object_handlers! {
    /// A handler of objects that were never handled before.
    create = Create, HandlerKind::Create;
    /// A handler of essential changes.
    update = Update, HandlerKind::Update;
    /// A handler of requested deletions.
    delete = Delete, HandlerKind::Delete { optional: false };
    /// A handler of objects that exist when the operator starts.
    resume = Resume, HandlerKind::Resume { deleted: false };
    /// A handler of raw events.
    event = Event, HandlerKind::Event;
    /// A handler that runs beside the object.
    daemon = Daemon, HandlerKind::Daemon(Default::default());
    /// A check of objects before they are stored.
    validate = Validate, HandlerKind::Validate(WebhookOptions::default());
    /// A change of objects before they are stored.
    mutate = Mutate, HandlerKind::Mutate(WebhookOptions::default());
}

/// A handler that runs repeatedly beside the object.
///
/// # Panics
/// Panics when the texts do not name a resource; they are part of the program.
pub fn timer<Inputs: 'static>(
    resources: impl ForResources,
    interval: Duration,
    function: impl HandlerFn<kind::Timer, Inputs>,
) -> Closure {
    let options =
        kopf_core::handler::TimerOptions { interval: Some(interval), ..Default::default() };
    Closure::new("timer", HandlerKind::Timer(options), function).of(resources)
}

/// A handler of changes of one field; its id has the field as a suffix.
///
/// # Panics
/// Panics when the texts do not name a resource; they are part of the program.
pub fn field<Inputs: 'static>(
    resources: impl ForResources,
    path: &str,
    function: impl HandlerFn<kind::Field, Inputs>,
) -> Closure {
    let id = format!("field/{path}");
    Closure::new(&id, HandlerKind::Field, function).of(resources).field(path)
}

macro_rules! activities {
    ($($(#[$doc:meta])* $name:ident = $marker:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<Inputs: 'static>(function: impl HandlerFn<kind::$marker, Inputs>) -> Closure {
            Closure::new(stringify!($name), HandlerKind::$marker, function)
        }
    )*};
}

activities! {
    /// A handler before the operator touches the cluster.
    startup = Startup;
    /// A handler after all else has stopped.
    cleanup = Cleanup;
    /// A handler that contributes to the liveness answer.
    probe = Probe;
    /// A part of another handler.
    sub = Sub;
}
