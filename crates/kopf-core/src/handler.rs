//! The engine's description of a handler: its identity, kind and conditions, and how to call it.

use std::any::Any;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use kopf_model::{CallbackError, FieldPath, Resource, Selector};
use serde_json::Value;

use crate::filter::{FilterResult, Filters, Matching};
use crate::occasion::{Occasion, Reason, Subject};

pub mod invoke;

use invoke::Invoke;

/// The name of a handler: the key of its stored progress and of its result in the status.
pub type HandlerId = Arc<str>;

/// A registered handler, type-erased: Rust functions and Python callables look the same here.
#[derive(Clone)]
pub struct Handler {
    /// The id, including the field suffix and the parent's id.
    pub id: HandlerId,
    /// Earlier ids under which progress may be stored.
    pub was: Vec<HandlerId>,
    /// What the handler reacts to, with the options of that kind.
    pub kind: HandlerKind,
    /// The resources that it handles; `None` for activities and sub-handlers.
    pub selector: Option<Selector>,
    /// The conditions on objects.
    pub filters: Filters,
    /// What to do if it fails.
    pub retrying: Retrying,
    /// The resources of the children that are watched for the handler.
    pub children: Vec<Selector>,
    /// An arbitrary value passed to the function.
    pub param: Option<Arc<dyn Any + Send + Sync>>,
    /// The user's code.
    pub invoke: Arc<dyn Invoke>,
    /// What the function does to the cluster.
    pub access: Access,
    /// How it is described to users.
    pub docs: HandlerDocs,
    /// The custom resource definition of a typed resource.
    pub definition: Option<TypeDefinition>,
}

/// What the source code says about a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandlerDocs {
    /// The purpose of the handler, from its documentation.
    pub description: Option<String>,
    /// The signature of its function, as written.
    pub signature: Option<String>,
}

/// What a handler does in the cluster, for generated RBAC rules and start-up checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// What the function itself may do.
    pub needs: Vec<Need>,
    /// What the Roles and bindings among the desired children grant, if declared.
    pub grants: Grants,
    /// What the engine may write for the function, according to its signature.
    pub touches: Touches,
}

impl From<Touches> for Access {
    fn from(touches: Touches) -> Self {
        Self { needs: Vec::new(), grants: Grants::default(), touches }
    }
}

/// A custom resource definition as data. If it must be derived from a type, it is created on first
/// use.
#[derive(Clone)]
pub struct TypeDefinition(Arc<LazyLock<Value, MakeDefinition>>);

type MakeDefinition = Box<dyn FnOnce() -> Value + Send>;

impl TypeDefinition {
    /// Creates a definition on first use.
    #[must_use]
    pub fn lazy(make: impl FnOnce() -> Value + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// The definition.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for TypeDefinition {
    fn from(definition: Value) -> Self {
        Self::lazy(move || definition)
    }
}

impl std::fmt::Debug for TypeDefinition {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TypeDefinition")
    }
}

/// What a handler reacts to.
#[derive(Clone)]
pub enum HandlerKind {
    /// Every raw event; errors are ignored.
    Event,
    /// An object that has never been handled.
    Create,
    /// An essential change.
    Update,
    /// A requested deletion.
    Delete {
        /// Whether not to hold the object with the finalizer for this handler.
        optional: bool,
    },
    /// An object first seen after the operator's start.
    Resume {
        /// Whether to include objects that are being deleted.
        deleted: bool,
    },
    /// A change of one field, for any reason.
    Field,
    /// A part of another handler, run for the same reason as the parent.
    Sub,
    /// Computes entries of an in-memory index.
    Index,
    /// Runs from the creation of the object to its deletion.
    Daemon(DaemonOptions),
    /// Runs repeatedly while the object exists.
    Timer(TimerOptions),
    /// Returns the children that the object should have.
    Desired,
    /// Looks at the children of the object whenever one of them changes.
    Observe,
    /// Validates an admission request.
    Validate(WebhookOptions),
    /// Validates and mutates an admission request.
    Mutate(WebhookOptions),
    /// Converts an object from one version of its resource to another.
    Convert(ConvertOptions),
    /// Runs before the operator connects to the cluster.
    Startup,
    /// Runs after everything else has stopped.
    Cleanup,
    /// Returns credentials.
    Login,
    /// Contributes to the response of the liveness probe.
    Probe,
}

impl HandlerKind {
    /// The name of the kind, as in the attributes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete { .. } => "delete",
            Self::Resume { .. } => "resume",
            Self::Field => "field",
            Self::Sub => "subhandler",
            Self::Index => "index",
            Self::Daemon(_) => "daemon",
            Self::Timer(_) => "timer",
            Self::Validate(_) => "validate",
            Self::Mutate(_) => "mutate",
            Self::Convert(_) => "convert",
            Self::Desired => "desired",
            Self::Observe => "observe",
            Self::Startup => "startup",
            Self::Cleanup => "cleanup",
            Self::Login => "login",
            Self::Probe => "probe",
        }
    }
}

/// Options of a daemon.
#[derive(Clone, Default)]
pub struct DaemonOptions {
    /// How long to wait before the first run.
    pub initial_delay: Delay,
    /// The time between the stop flag and the cancellation.
    pub cancellation_backoff: Option<Duration>,
    /// How long to wait after the cancellation before the daemon is abandoned.
    pub cancellation_timeout: Option<Duration>,
    /// The polling period while waiting without a timeout.
    pub cancellation_polling: Option<Duration>,
}

/// Options of a timer.
#[derive(Clone, Default)]
pub struct TimerOptions {
    /// The pause between runs.
    pub interval: Option<Duration>,
    /// How long to wait before the first run.
    pub initial_delay: Delay,
    /// Whether to align runs to multiples of the interval.
    pub sharp: bool,
    /// Run only after the object was essentially unchanged for this long.
    pub idle: Option<Duration>,
}

/// A fixed delay, or one computed from the object.
#[derive(Clone, Default)]
pub enum Delay {
    /// No delay.
    #[default]
    None,
    /// This long.
    Fixed(Duration),
    /// Computed by the function.
    Computed(Arc<DelayFn>),
}

/// Computes a delay from the object.
pub type DelayFn = dyn Fn(&Subject) -> Result<Duration, CallbackError> + Send + Sync;

/// Options of admission handlers.
#[derive(Clone, Debug, Default)]
pub struct WebhookOptions {
    /// The operations (`CREATE`, `UPDATE`, `DELETE`, `CONNECT`); empty means all.
    pub operations: Vec<String>,
    /// The subresource, `*` for any; `None` means the main resource only.
    pub subresource: Option<String>,
    /// Whether to keep the webhook configured after the operator exits.
    pub persistent: bool,
    /// Whether the handler has side effects outside dry runs.
    pub side_effects: bool,
    /// Whether to admit the object if the webhook cannot be called.
    pub ignore_failures: bool,
}

/// Options of conversions; the selector of the handler is the version to convert from.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// The version to convert to, with its group and plural.
    pub to: Selector,
    /// The definition of a typed version to convert to.
    pub definition: Option<TypeDefinition>,
}

/// What to do if a handler fails.
#[derive(Clone, Debug, Default)]
pub struct Retrying {
    /// How arbitrary errors are treated; `None` means the default of the handler's kind.
    pub errors: Option<ErrorsMode>,
    /// The total time since the first attempt, across retries.
    pub timeout: Option<Duration>,
    /// The number of attempts.
    pub retries: Option<u32>,
    /// The delay after arbitrary errors; `None` means the setting's default.
    pub backoff: Option<Duration>,
}

/// How errors without retry information are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorsMode {
    /// As success without a result.
    Ignored,
    /// Retried after the backoff.
    Temporary,
    /// Never retried.
    Permanent,
}

/// Verbs on a resource that a handler's parameters or declarations require.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The API group.
    pub group: String,
    /// The plural, with a subresource after a slash if any.
    pub resource: String,
    /// The verbs.
    pub verbs: Vec<String>,
}

impl Need {
    /// Parses verbs and a resource from a text such as `get,create deployments.apps`.
    ///
    /// ```
    /// use kopf_core::handler::Need;
    ///
    /// let need = Need::parse("get,create deployments.apps").expect("verbs and a resource");
    /// assert_eq!((need.group.as_str(), need.resource.as_str()), ("apps", "deployments"));
    /// assert_eq!(need.verbs, ["get", "create"]);
    /// assert_eq!(Need::parse("deployments.apps"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (verbs, resource) = text.trim().split_once(' ')?;
        let (resource, group) = resource.trim().split_once('.').unwrap_or((resource.trim(), ""));
        let verbs = verbs.split(',').map(str::to_owned).collect();
        Some(Self { group: group.to_owned(), resource: resource.to_owned(), verbs })
    }
}

/// What the Roles and bindings created by a handler grant. Kubernetes does not allow granting more
/// rights than one holds, so these determine the rights of the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// The rules of the roles, which the operator must hold itself.
    pub rules: Vec<Need>,
    /// The roles that are bound, by plural (`roles` or `clusterroles`) and name.
    pub bound: Vec<(String, String)>,
}

impl Grants {
    /// Parses the plural and the name of a bound role from a text such as `clusterroles/view`.
    ///
    /// ```
    /// use kopf_core::handler::Grants;
    ///
    /// let view = ("clusterroles".to_owned(), "view".to_owned());
    /// assert_eq!(Grants::role("clusterroles/view"), Some(view));
    /// assert_eq!(Grants::role("view"), None);
    /// ```
    #[must_use]
    pub fn role(text: &str) -> Option<(String, String)> {
        let (plural, name) = text.trim().split_once('/')?;
        let is_known = matches!(plural, "roles" | "clusterroles") && !name.is_empty();
        is_known.then(|| (plural.to_owned(), name.to_owned()))
    }
}

/// What the engine writes on behalf of a function, besides its own records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touches {
    /// Any field of the object except the status.
    pub object: bool,
    /// The status, through a result or directly.
    pub status: bool,
    /// Kubernetes events.
    pub events: bool,
}

impl Touches {
    /// For functions of which nothing is known.
    #[must_use]
    pub fn everything() -> Self {
        Self { object: true, status: true, events: true }
    }

    /// For functions that only read.
    #[must_use]
    pub fn nothing() -> Self {
        Self { object: false, status: false, events: false }
    }

    /// What either of two touches.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            object: self.object || other.object,
            status: self.status || other.status,
            events: self.events || other.events,
        }
    }
}

/// Groups of handlers that are served in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Raw events.
    Watching,
    /// Detected changes.
    Changing,
    /// Daemons and timers.
    Spawning,
    /// Indexes.
    Indexing,
    /// Desired children, and observers of children.
    Desired,
    /// Admission requests.
    Admission,
    /// Conversions between versions.
    Conversion,
    /// Phases of the operator.
    Activities,
}

impl Family {
    /// Whether the cluster calls such handlers, so that there must be an endpoint for its reviews.
    #[must_use]
    pub fn is_asked(self) -> bool {
        matches!(self, Self::Admission | Self::Conversion)
    }
}

impl HandlerKind {
    /// The group of the kind.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            Self::Event => Family::Watching,
            Self::Create
            | Self::Update
            | Self::Delete { .. }
            | Self::Resume { .. }
            | Self::Field
            | Self::Sub => Family::Changing,
            Self::Daemon(_) | Self::Timer(_) => Family::Spawning,
            Self::Index => Family::Indexing,
            Self::Desired | Self::Observe => Family::Desired,
            Self::Validate(_) | Self::Mutate(_) => Family::Admission,
            Self::Convert(_) => Family::Conversion,
            Self::Startup | Self::Cleanup | Self::Login | Self::Probe => Family::Activities,
        }
    }

    /// The only reason why handlers of this kind are called, or `None` for any.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Create => Some(Reason::Create),
            Self::Update => Some(Reason::Update),
            Self::Delete { .. } => Some(Reason::Delete),
            _ => None,
        }
    }

    /// Whether the field of interest must have changed.
    #[must_use]
    pub fn field_needs_change(&self) -> bool {
        matches!(self, Self::Update | Self::Field)
    }

    /// How errors without retry information are treated by default.
    #[must_use]
    pub fn default_errors(&self) -> ErrorsMode {
        match self.family() {
            Family::Watching | Family::Indexing => ErrorsMode::Ignored,
            Family::Changing | Family::Spawning | Family::Desired | Family::Activities => {
                ErrorsMode::Temporary
            }
            Family::Admission | Family::Conversion => ErrorsMode::Permanent,
        }
    }

    /// The name of this kind of handlers in the logs.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::Daemon(_) => "Daemon",
            Self::Timer(_) => "Timer",
            Self::Index => "Indexer",
            Self::Validate(_) | Self::Mutate(_) => "Webhook",
            Self::Convert(_) => "Conversion",
            Self::Startup | Self::Cleanup | Self::Login | Self::Probe => "Activity",
            _ => "Handler",
        }
    }
}

/// The id of a handler from its base name: a field of interest is appended, except for indexes and
/// sub-handlers.
#[must_use]
pub fn handler_id(base: &str, field: Option<&FieldPath>, kind: &HandlerKind) -> HandlerId {
    match field.filter(|field| !field.is_root()) {
        Some(field) if !matches!(kind, HandlerKind::Index | HandlerKind::Sub) => {
            format!("{base}/{field}").into()
        }
        _ => base.into(),
    }
}

/// The id of a sub-handler under its parent.
#[must_use]
pub fn child_id(parent: &str, own: &str) -> HandlerId {
    format!("{parent}/{own}").into()
}

impl Handler {
    /// Creates a handler with default options.
    pub fn new(id: impl Into<HandlerId>, kind: HandlerKind, invoke: Arc<dyn Invoke>) -> Self {
        Self {
            id: id.into(),
            was: Vec::new(),
            kind,
            selector: None,
            filters: Filters::default(),
            retrying: Retrying::default(),
            children: Vec::new(),
            param: None,
            invoke,
            access: Touches::everything().into(),
            docs: HandlerDocs::default(),
            definition: None,
        }
    }

    /// The same handler for the resources of a selector.
    #[must_use]
    pub fn for_resources(mut self, selector: Selector) -> Self {
        self.selector = Some(selector);
        self
    }

    /// Whether the selector accepts the resource; handlers without a selector accept any.
    #[must_use]
    pub fn is_for(&self, resource: &Resource) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(resource))
    }

    /// Whether all conditions hold now.
    ///
    /// # Errors
    /// Fails when a function of a user does.
    pub fn matches(&self, subject: &Subject, occasion: &Occasion) -> FilterResult {
        let field_needs_change = self.kind.field_needs_change();
        self.filters.match_with(subject, occasion, Matching::Now { field_needs_change })
    }

    /// Whether all conditions that do not depend on a change hold.
    ///
    /// # Errors
    /// Fails when a function of a user does.
    pub fn prematches(&self, subject: &Subject, occasion: &Occasion) -> FilterResult {
        self.filters.match_with(subject, occasion, Matching::Ever)
    }

    /// The definitions of all typed resources that it names.
    pub fn definitions(&self) -> impl Iterator<Item = Value> + '_ {
        let target = match &self.kind {
            HandlerKind::Convert(options) => options.definition.as_ref(),
            _ => None,
        };
        self.definition.iter().chain(target).map(|definition| definition.value().clone())
    }

    /// The definition of the typed resource that it handles.
    #[must_use]
    pub fn own_definition(&self) -> Option<Value> {
        self.definition.as_ref().map(|definition| definition.value().clone())
    }

    /// The resources that it handles and converts to: those that must exist.
    pub fn resources(&self) -> impl Iterator<Item = &Selector> {
        let target = match &self.kind {
            HandlerKind::Convert(options) => Some(&options.to),
            _ => None,
        };
        self.selector.iter().chain(target)
    }

    /// Whether the selector names one specific resource rather than several.
    #[must_use]
    pub fn is_specific(&self) -> bool {
        self.selector.as_ref().is_some_and(Selector::is_specific)
    }
}

/// Formatted as in the logs: `Handler 'create_fn'`.
impl std::fmt::Display for Handler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} '{}'", self.kind.title(), self.id)
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Handler({})", self.id)
    }
}
