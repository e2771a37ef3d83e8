//! Handlers made from closures, for tiny operators, tests and registration at run time.
//!
//! Closures take their inputs by value, since a future cannot borrow from its caller. Otherwise
//! they can do the same as functions with attributes. Options are methods; options of one kind
//! exist only for that kind.

mod calling;
mod resources;

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::{
    ConvertOptions, DaemonOptions, Delay, ErrorsMode, Family, Grants, Need, Retrying, TimerOptions,
    Touches, WebhookOptions, handler_id,
};
use kopf_core::{Call, Handler, HandlerKind, Invocation, Invoke, MetaFilter, ValueFilter};
use kopf_model::{FieldPath, Selector};

use crate::declare::Declaration;
use crate::filter::{self, Condition};
use crate::input::Requirement;
use crate::kind::{self, FamilyKind, Kind, ObjectKind, RetriedKind};
use crate::object::FromObject;

pub use calling::{
    Answer, Blocked, Blocking, Callable, Given, HandlerFn, Inputs, Promise, blocking,
};
pub use resources::{ForResources, ToVersion, of};

struct Erased<K, Inputs, F>(Arc<F>, PhantomData<fn(K, Inputs)>);

impl<K: Kind, Inputs: 'static, F: HandlerFn<K, Inputs>> Invoke for Erased<K, Inputs, F> {
    fn invoke(&self, call: Call) -> Invocation {
        Arc::clone(&self.0).call(call)
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
pub struct Closure<K> {
    declaration: Declaration,
    /// The current and earlier ids, without the field of interest.
    name: String,
    was: Vec<String>,
    kind: PhantomData<fn(K)>,
}

impl<K: Kind> Closure<K> {
    fn new<I: 'static>(id: &str, kind: HandlerKind, function: impl HandlerFn<K, I>) -> Self {
        fn look<K: Kind, I, F: HandlerFn<K, I>>(
            _: &F,
            is_stored: bool,
        ) -> (Vec<Requirement>, Touches) {
            (F::requires(), F::touches(is_stored))
        }
        let is_stored = matches!(kind.family(), Family::Changing | Family::Spawning);
        let (requires, touches) = look(&function, is_stored);
        let invoke = Arc::new(Erased::<K, I, _>(Arc::new(function), PhantomData));
        let handler = Handler { access: touches.into(), ..Handler::new(id, kind, invoke) };
        let declaration = Declaration { handler, requires };
        Self { declaration, name: id.to_owned(), was: Vec::new(), kind: PhantomData }
    }

    fn change(mut self, change: impl FnOnce(&mut Handler)) -> Self {
        change(&mut self.declaration.handler);
        self
    }

    /// Sets the resources of the handler.
    ///
    /// # Panics
    /// Panics if the strings do not name a resource, which is a mistake in the program.
    fn of(mut self, resources: impl ForResources) -> Self {
        match resources.into_selector() {
            Ok(selector) => self.declaration.handler.selector = Some(selector),
            Err(error) => panic!("handler {}: {error}", self.name),
        }
        self
    }

    /// Sets the id under which progress and results are stored; a field of interest is appended to
    /// it.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.name);
        self
    }

    /// The id without the field of interest.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds an earlier id under which progress may still be stored.
    pub fn was(mut self, id: &str) -> Self {
        self.was.push(id.to_owned());
        self
    }

    /// Sets the description of the handler.
    pub fn description(self, text: &str) -> Self {
        self.change(|handler| handler.docs.description = Some(text.to_owned()))
    }

    /// Declares what the closure itself does in the cluster: `get,create deployments.apps`.
    ///
    /// # Panics
    /// Panics if the string is not verbs and a resource, which is a mistake in the program.
    pub fn needs(self, need: &str) -> Self {
        let need = self.need(need);
        self.change(|handler| handler.access.needs.push(need))
    }

    fn need(&self, need: &str) -> Need {
        let Some(parsed) = Need::parse(need) else {
            panic!("handler {}: a need is verbs and a resource, not {need:?}", self.name);
        };
        parsed
    }

    /// Sets the value for the input `Param<T>`.
    pub fn param<T: Any + Send + Sync>(self, value: T) -> Self {
        self.change(|handler| handler.param = Some(Arc::new(value)))
    }
}

impl<K: RetriedKind> Closure<K> {
    /// Sets the maximum number of attempts.
    pub fn retries(self, retries: u32) -> Self {
        self.change(|handler| handler.retrying.retries = Some(retries))
    }

    /// Sets the pause after arbitrary errors.
    pub fn backoff(self, backoff: Duration) -> Self {
        self.change(|handler| handler.retrying.backoff = Some(backoff))
    }

    /// Sets the total time since the first attempt.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.change(|handler| handler.retrying.timeout = Some(timeout))
    }

    /// Sets how arbitrary errors are treated.
    pub fn errors(self, mode: ErrorsMode) -> Self {
        self.change(|handler| {
            handler.retrying = Retrying { errors: Some(mode), ..handler.retrying.clone() }
        })
    }
}

impl<K: ObjectKind> Closure<K> {
    /// Adds a condition on a label.
    pub fn label(self, key: &str, filter: MetaFilter) -> Self {
        self.change(|handler| handler.filters.labels.push((key.to_owned(), filter)))
    }

    /// Adds a condition on an annotation.
    pub fn annotation(self, key: &str, filter: MetaFilter) -> Self {
        self.change(|handler| handler.filters.annotations.push((key.to_owned(), filter)))
    }

    /// Adds a condition on the object.
    pub fn when<Look>(self, condition: impl Condition<Look>) -> Self {
        self.change(|handler| handler.filters.when = Some(filter::condition(condition)))
    }

    /// Sets the field of interest.
    pub fn field(self, path: impl Into<FieldPath>) -> Self {
        self.change(|handler| handler.filters.field = Some(path.into()))
    }

    /// Sets a condition on the field of interest.
    pub fn value(self, filter: ValueFilter) -> Self {
        self.change(|handler| handler.filters.value = Some(filter))
    }
}

impl<K: FamilyKind> Closure<K> {
    /// Declares the kinds of children that the closure reads with `Children<T>`; they are watched.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kopf_handler::{Children, closure};
    ///
    /// let handler = closure::create("crews.example.com", |pods: Children<Pod>| async move {
    ///     println!("{} pods are there already", pods.len());
    /// });
    /// let handler = handler.children([closure::of::<Pod>()]);
    /// ```
    ///
    /// # Panics
    /// Panics if the strings do not name a resource, or if there are none, which are mistakes in
    /// the program.
    pub fn children<C: ForResources>(self, children: impl IntoIterator<Item = C>) -> Self {
        let name = &self.name;
        let selector = |child: C| match child.into_selector() {
            Ok(selector) => selector,
            Err(error) => panic!("handler {name}: {error}"),
        };
        let children: Vec<Selector> = children.into_iter().map(selector).collect();
        assert!(!children.is_empty(), "handler {name}: say which kinds of children there are");
        self.change(|handler| handler.children = children)
    }
}

/// Uses the same ids as the attributes.
impl<K> From<Closure<K>> for Declaration {
    fn from(closure: Closure<K>) -> Self {
        let Closure { mut declaration, name, was, .. } = closure;
        let handler = &mut declaration.handler;
        let whole = |id: &str| handler_id(id, handler.filters.field.as_ref(), &handler.kind);
        (handler.id, handler.was) = (whole(&name), was.iter().map(|id| whole(id)).collect());
        declaration
    }
}

macro_rules! options_of_changes {
    ($($marker:ident)*) => {$(
        impl Closure<kind::$marker> {
            /// Sets a condition on the old value of the field of interest.
            pub fn old(self, filter: ValueFilter) -> Self {
                self.change(|handler| handler.filters.old = Some(filter))
            }

            /// Sets a condition on the new value of the field of interest.
            pub fn new_value(self, filter: ValueFilter) -> Self {
                self.change(|handler| handler.filters.new = Some(filter))
            }
        }
    )*};
}

options_of_changes!(Update Field Sub);

impl Closure<kind::Desired> {
    /// Declares what the Roles among the children grant: `get,list pods`. The operator then holds
    /// these rights.
    ///
    /// # Panics
    /// Panics if the string is not verbs and a resource, which is a mistake in the program.
    pub fn grants(self, rule: &str) -> Self {
        let rule = self.need(rule);
        self.change(|handler| handler.access.grants.rules.push(rule))
    }

    /// Declares a role that the bindings among the children refer to: `roles/NAME` or
    /// `clusterroles/NAME`.
    ///
    /// # Panics
    /// Panics if the string is not such a role, which is a mistake in the program.
    pub fn binds(self, role: &str) -> Self {
        let Some(role) = Grants::role(role) else {
            panic!(
                "handler {}: `roles/NAME` or `clusterroles/NAME` is bound, not {role:?}",
                self.name
            );
        };
        self.change(|handler| handler.access.grants.bound.push(role))
    }
}

impl Closure<kind::Delete> {
    /// Does not hold the object with the finalizer for this handler.
    pub fn optional(self) -> Self {
        self.change(|handler| handler.kind = HandlerKind::Delete { optional: true })
    }
}

impl Closure<kind::Resume> {
    /// Also handles objects that are being deleted.
    pub fn deleted(self) -> Self {
        self.change(|handler| handler.kind = HandlerKind::Resume { deleted: true })
    }
}

macro_rules! options {
    ($marker:ident($options:ident) {
        $($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty)?) $change:expr;)*
    }) => {
        impl Closure<kind::$marker> {
            fn with(self, change: impl FnOnce(&mut $options)) -> Self {
                self.change(|handler| {
                    if let HandlerKind::$marker(options) = &mut handler.kind {
                        change(options);
                    }
                })
            }

            $(
                $(#[$doc])*
                pub fn $name(self, $($argument: $type)?) -> Self {
                    let change: fn(&mut $options $(, $type)?) = $change;
                    self.with(|options| change(options $(, $argument)?))
                }
            )*
        }
    };
}

options! { Daemon(DaemonOptions) {
    /// How long to wait before the first run.
    initial_delay(delay: Duration) |options, delay| options.initial_delay = Delay::Fixed(delay);
    /// The time between the stop flag and the cancellation.
    cancellation_backoff(time: Duration) |options, time| options.cancellation_backoff = Some(time);
    /// How long to wait after the cancellation before the daemon is abandoned.
    cancellation_timeout(time: Duration) |options, time| options.cancellation_timeout = Some(time);
    /// The polling period while waiting without a timeout.
    cancellation_polling(time: Duration) |options, time| options.cancellation_polling = Some(time);
} }

options! { Timer(TimerOptions) {
    /// How long to wait before the first run.
    initial_delay(delay: Duration) |options, delay| options.initial_delay = Delay::Fixed(delay);
    /// Aligns runs to multiples of the interval.
    sharp() |options| options.sharp = true;
    /// Runs only after the object has been essentially unchanged for this long.
    idle(time: Duration) |options, time| options.idle = Some(time);
} }

macro_rules! computed_delays {
    ($($marker:ident)*) => {$(
        impl Closure<kind::$marker> {
            /// Sets how long to wait before the first run, computed from a view of the object.
            pub fn initial_delay_by<V: FromObject>(
                self,
                compute: impl Fn(&V) -> Duration + Send + Sync + 'static,
            ) -> Self {
                self.with(|options| options.initial_delay = filter::delay(compute))
            }
        }
    )*};
}

computed_delays!(Daemon Timer);

macro_rules! webhooks {
    ($($marker:ident)*) => {$(options! { $marker(WebhookOptions) {
        /// Adds an operation to review: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`; by default, all
        /// of them are reviewed.
        operation(name: &str) |options, name| options.operations.push(name.to_owned());
        /// Sets the subresource, `*` for any.
        subresource(name: &str) |options, name| options.subresource = Some(name.to_owned());
        /// Keeps the webhook configured after the operator exits.
        persistent() |options| options.persistent = true;
        /// Declares that the closure has side effects outside dry runs.
        side_effects() |options| options.side_effects = true;
        /// Admits the object if the webhook cannot be called.
        ignore_failures() |options| options.ignore_failures = true;
    } })*};
}

webhooks!(Validate Mutate);

macro_rules! object_handlers {
    ($($(#[$doc:meta])* $name:ident = $marker:ident, $kind:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        /// Panics if the strings do not name a resource, which is a mistake in the program.
        pub fn $name<Inputs: 'static>(
            resources: impl ForResources,
            function: impl HandlerFn<kind::$marker, Inputs>,
        ) -> Closure<kind::$marker> {
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
    /// A function over every object, whose results are stored in an index under the handler's id.
    index = Index, HandlerKind::Index;
    /// A handler that runs while the object exists.
    daemon = Daemon, HandlerKind::Daemon(Default::default());
    /// A handler that validates objects before they are stored.
    validate = Validate, HandlerKind::Validate(WebhookOptions::default());
    /// A handler that mutates objects before they are stored.
    mutate = Mutate, HandlerKind::Mutate(WebhookOptions::default());
}

/// A handler that runs repeatedly while the object exists.
///
/// # Panics
/// Panics if the strings do not name a resource, which is a mistake in the program.
pub fn timer<Inputs: 'static>(
    resources: impl ForResources,
    interval: Duration,
    function: impl HandlerFn<kind::Timer, Inputs>,
) -> Closure<kind::Timer> {
    let options = TimerOptions { interval: Some(interval), ..Default::default() };
    Closure::new("timer", HandlerKind::Timer(options), function).of(resources)
}

/// A function from the object to the children that it should have, which are watched.
///
/// Called in every cycle of the object: captured values that change, such as those behind an `Arc`,
/// are read when the object or one of its children changes.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Service};
/// use kopf_handler::{Child, Name, closure};
///
/// let children = [closure::of::<ConfigMap>(), closure::of::<Service>()];
/// let handler = closure::desired("sites.example.com", children, |name: Name| async move {
///     let data = std::collections::BTreeMap::from([("site".to_owned(), name.0)]);
///     let map = ConfigMap { data: Some(data), ..ConfigMap::default() };
///     vec![Child::from(map), Child::from(Service::default())]
/// });
/// ```
///
/// # Panics
/// Panics if the strings do not name a resource, or if no resource is given for the children, which
/// are mistakes in the program.
pub fn desired<Inputs: 'static, C: ForResources>(
    resources: impl ForResources,
    children: impl IntoIterator<Item = C>,
    function: impl HandlerFn<kind::Desired, Inputs>,
) -> Closure<kind::Desired> {
    Closure::new("desired", HandlerKind::Desired, function).of(resources).children(children)
}

/// A handler called when an object or one of its children changes, with all children in
/// `Children<T>`.
///
/// # Panics
/// Panics if the strings do not name a resource, or if no resource is given for the children, which
/// are mistakes in the program.
pub fn observe<Inputs: 'static, C: ForResources>(
    resources: impl ForResources,
    children: impl IntoIterator<Item = C>,
    function: impl HandlerFn<kind::Observe, Inputs>,
) -> Closure<kind::Observe> {
    Closure::new("observe", HandlerKind::Observe, function).of(resources).children(children)
}

/// A function that converts the object from one version to another.
///
/// ```
/// use kopf_handler::{Error, Spec, closure};
/// use serde_json::json;
///
/// let handler = closure::convert(("example.com", "v1", "databases"), "v2", |spec: Spec| async move {
///     Ok::<_, Error>(json!({"spec": {"size": spec["size"].as_str().unwrap_or("0").parse::<u32>()?}}))
/// });
/// ```
///
/// # Panics
/// Panics if the strings do not name a resource, which is a mistake in the program.
pub fn convert<Inputs: 'static>(
    resources: impl ForResources,
    to: impl ToVersion,
    function: impl HandlerFn<kind::Convert, Inputs>,
) -> Closure<kind::Convert> {
    let kind = HandlerKind::Convert(ConvertOptions::default());
    Closure::new("convert", kind, function).of(resources).change(|handler| {
        if let Some(from) = &handler.selector {
            let options = ConvertOptions { to: to.of(from), definition: None };
            handler.kind = HandlerKind::Convert(options);
        }
    })
}

/// A handler of changes of one field; its id has the field as a suffix.
///
/// # Panics
/// Panics if the strings do not name a resource, which is a mistake in the program.
pub fn field<Inputs: 'static>(
    resources: impl ForResources,
    path: &str,
    function: impl HandlerFn<kind::Field, Inputs>,
) -> Closure<kind::Field> {
    Closure::new("field", HandlerKind::Field, function).of(resources).field(path)
}

macro_rules! activities {
    ($($(#[$doc:meta])* $name:ident = $marker:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<Inputs: 'static>(
            function: impl HandlerFn<kind::$marker, Inputs>,
        ) -> Closure<kind::$marker> {
            Closure::new(stringify!($name), HandlerKind::$marker, function)
        }
    )*};
}

activities! {
    /// A handler that runs before the operator connects to the cluster.
    startup = Startup;
    /// A handler that runs after everything else has stopped.
    cleanup = Cleanup;
    /// A handler that gets credentials.
    login = Login;
    /// A handler that contributes to the response of the liveness probe.
    probe = Probe;
    /// A part of another handler.
    sub = Sub;
}
