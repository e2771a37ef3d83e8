//! Handlers as Python declares them: plain data, with numbers in place of functions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use kopf_core::answers;
use kopf_core::filter::{Filters, MetaFilter, ValueFilter};
use kopf_core::handler::{
    DaemonOptions, Delay, ErrorsMode, Grants, Handler, HandlerKind, Need, Retrying, TimerOptions,
    Touches, WebhookOptions,
};
use kopf_core::invoke::CallbackError;
use kopf_model::resource::{SelectFn, SelectorName};
use kopf_model::selector::{Criteria, SelectorError};
use kopf_model::{FieldPath, Resource, Selector};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::{Asker, Query};
use crate::call::PythonHandler;
use crate::queue::Queue;

/// One handler.
#[derive(Deserialize)]
pub(crate) struct Declaration {
    kind: String,
    id: String,
    #[serde(default)]
    identity: usize,
    selector: Option<SelectorDeclaration>,
    description: Option<String>,
    signature: Option<String>,
    /// Of handlers of deletions.
    optional: Option<bool>,
    /// Of handlers of resuming.
    deleted: Option<bool>,
    #[serde(flatten)]
    retrying: RetryingDeclaration,
    #[serde(flatten)]
    filters: FiltersDeclaration,
    #[serde(flatten)]
    background: BackgroundDeclaration,
    #[serde(flatten)]
    webhook: WebhookDeclaration,
    #[serde(flatten)]
    rights: RightsDeclaration,
    /// The definition of a typed resource.
    definition: Option<Value>,
}

/// What happens after errors.
#[derive(Deserialize)]
struct RetryingDeclaration {
    errors: Option<String>,
    timeout: Option<f64>,
    retries: Option<i64>,
    backoff: Option<f64>,
}

/// Which objects are meant.
#[derive(Deserialize)]
struct FiltersDeclaration {
    labels: Option<IndexMap<String, FilterDeclaration>>,
    annotations: Option<IndexMap<String, FilterDeclaration>>,
    field: Option<Vec<String>>,
    value: Option<FilterDeclaration>,
    old: Option<FilterDeclaration>,
    new: Option<FilterDeclaration>,
    when: Option<Value>,
}

/// The options of daemons and timers.
#[derive(Deserialize)]
struct BackgroundDeclaration {
    initial_delay: Option<Value>,
    cancellation_backoff: Option<f64>,
    cancellation_timeout: Option<f64>,
    cancellation_polling: Option<f64>,
    interval: Option<f64>,
    idle: Option<f64>,
    sharp: Option<bool>,
}

/// The options of admission handlers.
#[derive(Deserialize)]
struct WebhookDeclaration {
    operations: Option<Vec<String>>,
    subresource: Option<String>,
    persistent: Option<bool>,
    side_effects: Option<bool>,
    ignore_failures: Option<bool>,
}

/// What is read and written besides the object.
#[derive(Deserialize)]
struct RightsDeclaration {
    /// The resources of the children that are watched for this handler.
    #[serde(default)]
    children: Vec<SelectorDeclaration>,
    /// What the function does to the cluster by itself.
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    grants: Vec<String>,
    #[serde(default)]
    binds: Vec<String>,
}

/// Which resources are meant.
#[derive(Clone, Deserialize)]
pub(crate) struct SelectorDeclaration {
    group: Option<String>,
    version: Option<String>,
    kind: Option<String>,
    plural: Option<String>,
    singular: Option<String>,
    shortcut: Option<String>,
    category: Option<String>,
    any_name: Option<String>,
    #[serde(default)]
    everything: bool,
    /// A function of Python decides.
    #[serde(default)]
    callback: bool,
}

#[derive(Deserialize)]
struct FilterDeclaration {
    equals: Option<Value>,
    #[serde(default)]
    present: bool,
    #[serde(default)]
    absent: bool,
    #[serde(default)]
    callback: bool,
}

/// Why a handler cannot be declared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidHandler {
    #[error("handler '{id}' has the unknown kind '{kind}'")]
    Kind { id: String, kind: String },
    #[error("the resource of handler '{id}' is not understood: {source}")]
    Selector { id: String, source: SelectorError },
    #[error("the children of handler '{id}' are not understood: {source}")]
    Children { id: String, source: SelectorError },
    #[error("handler '{id}': a need is verbs and a resource, not '{text}'")]
    Need { id: String, text: String },
    #[error("handler '{id}': `roles/NAME` or `clusterroles/NAME` is bound, not '{text}'")]
    Binding { id: String, text: String },
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

impl Declaration {
    /// The handler with this number.
    pub(crate) fn into_handler(
        self,
        index: usize,
        queue: &Arc<Queue>,
    ) -> Result<Handler, InvalidHandler> {
        let kind = self.kind(index, queue)?;
        let selector = self.selector(index, queue)?;
        let invoke = PythonHandler { index, identity: self.identity, queue: Arc::clone(queue) };
        let mut handler = Handler::new(self.id.clone(), kind, Arc::new(invoke));
        handler.selector = selector;
        handler.retrying = self.retrying.build();
        handler.docs.description = self.description;
        handler.docs.signature = self.signature;
        handler.filters = self.filters.build(index, &Asker::new(Arc::clone(queue)));
        self.rights.declare(&self.id, &mut handler)?;
        handler.definition = self.definition.map(Into::into);
        Ok(handler)
    }

    fn kind(&self, index: usize, queue: &Arc<Queue>) -> Result<HandlerKind, InvalidHandler> {
        Ok(match self.kind.as_str() {
            "startup" => HandlerKind::Startup,
            "cleanup" => HandlerKind::Cleanup,
            "login" => HandlerKind::Login,
            "probe" => HandlerKind::Probe,
            "event" => HandlerKind::Event,
            "create" => HandlerKind::Create,
            "update" => HandlerKind::Update,
            "delete" => HandlerKind::Delete { optional: self.optional.unwrap_or(false) },
            "resume" => HandlerKind::Resume { deleted: self.deleted.unwrap_or(false) },
            "field" => HandlerKind::Field,
            "index" => HandlerKind::Index,
            "daemon" => HandlerKind::Daemon(self.background.daemon(index, queue)),
            "timer" => HandlerKind::Timer(self.background.timer(index, queue)),
            "desired" => HandlerKind::Desired,
            "observe" => HandlerKind::Observe,
            "validate" => HandlerKind::Validate(self.webhook.build()),
            "mutate" => HandlerKind::Mutate(self.webhook.build()),
            other => {
                let (id, kind) = (self.id.clone(), other.to_owned());
                return Err(InvalidHandler::Kind { id, kind });
            }
        })
    }

    fn selector(
        &self,
        index: usize,
        queue: &Arc<Queue>,
    ) -> Result<Option<Selector>, InvalidHandler> {
        let Some(selector) = self.selector.clone() else { return Ok(None) };
        if selector.callback {
            let name = SelectorName::Matching(matching(index, Asker::new(Arc::clone(queue))));
            return Ok(Some(Selector { name, ..Selector::default() }));
        }
        let id = || self.id.clone();
        let selector = selector.build();
        selector.map(Some).map_err(|source| InvalidHandler::Selector { id: id(), source })
    }
}

impl RetryingDeclaration {
    fn build(&self) -> Retrying {
        Retrying {
            errors: self.errors.as_deref().and_then(errors_mode),
            timeout: self.timeout.map(seconds),
            retries: self.retries.map(|count| u32::try_from(count).unwrap_or(0)),
            backoff: self.backoff.map(seconds),
        }
    }
}

impl BackgroundDeclaration {
    fn daemon(&self, index: usize, queue: &Arc<Queue>) -> DaemonOptions {
        DaemonOptions {
            initial_delay: self.initial_delay(index, queue),
            cancellation_backoff: self.cancellation_backoff.map(seconds),
            cancellation_timeout: self.cancellation_timeout.map(seconds),
            cancellation_polling: self.cancellation_polling.map(seconds),
        }
    }

    fn timer(&self, index: usize, queue: &Arc<Queue>) -> TimerOptions {
        TimerOptions {
            interval: self.interval.map(seconds),
            initial_delay: self.initial_delay(index, queue),
            sharp: self.sharp.unwrap_or(false),
            idle: self.idle.map(seconds),
        }
    }

    fn initial_delay(&self, index: usize, queue: &Arc<Queue>) -> Delay {
        match &self.initial_delay {
            None | Some(Value::Null) => Delay::None,
            Some(Value::Number(number)) => Delay::Fixed(seconds(number.as_f64().unwrap_or(0.0))),
            Some(_) => {
                let asker = Asker::new(Arc::clone(queue));
                Delay::Computed(Arc::new(move |subject| {
                    let live = kopf_core::occasion::Live::new(subject.object.clone());
                    let occasion = kopf_core::occasion::Occasion::Background { live };
                    let matter = Some(asker.matter(subject, &occasion));
                    let kind = "initial_delay";
                    let query = Query { kind, handler: Some(index), matter, ..Query::default() };
                    Ok(seconds(asker.ask(query)?.as_f64().unwrap_or(0.0)))
                }))
            }
        }
    }
}

impl WebhookDeclaration {
    fn build(&self) -> WebhookOptions {
        WebhookOptions {
            operations: self.operations.clone().unwrap_or_default(),
            subresource: self.subresource.clone(),
            persistent: self.persistent.unwrap_or(false),
            side_effects: self.side_effects.unwrap_or(false),
            ignore_failures: self.ignore_failures.unwrap_or(false),
        }
    }
}

impl RightsDeclaration {
    /// What is watched and written besides the object, for the generated rights as well.
    fn declare(&self, id: &str, handler: &mut Handler) -> Result<(), InvalidHandler> {
        let id = || id.to_owned();
        for child in &self.children {
            let selector = child.clone().build();
            let selector =
                selector.map_err(|source| InvalidHandler::Children { id: id(), source })?;
            handler.children.push(selector);
        }
        let parse = |text: &String| {
            Need::parse(text).ok_or_else(|| InvalidHandler::Need { id: id(), text: text.clone() })
        };
        handler.access.needs = self.needs.iter().map(parse).collect::<Result<_, _>>()?;
        handler.access.grants.rules = self.grants.iter().map(parse).collect::<Result<_, _>>()?;
        for text in &self.binds {
            let role = Grants::role(text);
            let invalid = || InvalidHandler::Binding { id: id(), text: text.clone() };
            handler.access.grants.bound.push(role.ok_or_else(invalid)?);
        }
        if matches!(handler.kind, HandlerKind::Desired) {
            // Such functions get no patch; the condition and the children are the engine's.
            handler.access.touches = Touches::nothing();
        }
        Ok(())
    }
}

impl FiltersDeclaration {
    fn build(&self, index: usize, asker: &Asker) -> Filters {
        let metadata = |kind: &'static str, filters: &Option<IndexMap<String, _>>| {
            let filters = filters.iter().flatten();
            let filter = |(key, filter): (&String, &FilterDeclaration)| {
                (key.clone(), filter.metadata(kind, index, key, asker))
            };
            filters.map(filter).collect()
        };
        let value = |kind: &'static str, filter: &Option<FilterDeclaration>| {
            filter.as_ref().map(|filter| filter.value(kind, index, asker))
        };
        let when = self.when.as_ref().filter(|when| !when.is_null()).map(|_| {
            let asker = asker.clone();
            Arc::new(move |subject: &_, occasion: &_| {
                let query = Query { kind: "when", handler: Some(index), ..Query::default() };
                asker.accepts(query, subject, occasion)
            }) as kopf_core::filter::When
        });
        let field = self.field.as_ref();
        Filters {
            labels: metadata("labels", &self.labels),
            annotations: metadata("annotations", &self.annotations),
            field: field.map(|keys| FieldPath::from_keys(keys.iter().map(String::as_str))),
            value: value("value", &self.value),
            old: value("old", &self.old),
            new: value("new", &self.new),
            when,
        }
    }
}

impl SelectorDeclaration {
    /// The selector.
    pub(crate) fn build(self) -> Result<Selector, SelectorError> {
        let Self {
            group,
            version,
            kind,
            plural,
            singular,
            shortcut,
            category,
            any_name,
            everything,
            ..
        } = self;
        if everything {
            return Ok(Selector { group, version, ..Selector::everything() });
        }
        let criteria =
            Criteria { group, version, kind, plural, singular, shortcut, category, any_name };
        Selector::from_criteria(criteria)
    }
}

impl FilterDeclaration {
    fn metadata(&self, kind: &'static str, index: usize, key: &str, asker: &Asker) -> MetaFilter {
        if self.callback {
            let (asker, key) = (asker.clone(), key.to_owned());
            return MetaFilter::Matches(Arc::new(move |value, subject, occasion| {
                let value = value.map(Value::from);
                let (handler, key) = (Some(index), Some(key.clone()));
                let query = Query { kind, handler, key, value, ..Query::default() };
                asker.accepts(query, subject, occasion)
            }));
        }
        match &self.equals {
            _ if self.present => MetaFilter::Present,
            _ if self.absent => MetaFilter::Absent,
            Some(Value::String(text)) => MetaFilter::Equals(text.clone()),
            other => MetaFilter::Equals(other.as_ref().map(Value::to_string).unwrap_or_default()),
        }
    }

    fn value(&self, kind: &'static str, index: usize, asker: &Asker) -> ValueFilter {
        if self.callback {
            let asker = asker.clone();
            return ValueFilter::Matches(Arc::new(move |value, subject, occasion| {
                let (handler, value) = (Some(index), value.cloned());
                let query = Query { kind, handler, value, ..Query::default() };
                asker.accepts(query, subject, occasion)
            }));
        }
        match &self.equals {
            _ if self.present => ValueFilter::Present,
            _ if self.absent => ValueFilter::Absent,
            value => ValueFilter::Equals(value.clone().unwrap_or_default()),
        }
    }
}

/// Lets Python choose resources; each one is asked for once.
fn matching(index: usize, asker: Asker) -> Arc<SelectFn> {
    let known: Mutex<HashMap<Resource, Result<bool, CallbackError>>> = Mutex::default();
    Arc::new(move |resource| {
        if let Some(is_selected) = known.lock().get(resource) {
            return is_selected.clone();
        }
        let value = Some(json!({
            "group": resource.group, "version": resource.version, "plural": resource.plural,
            "kind": resource.kind, "singular": resource.singular,
            "shortcuts": resource.shortcuts, "categories": resource.categories,
            "subresources": resource.subresources, "verbs": resource.verbs,
            "namespaced": resource.namespaced, "preferred": resource.preferred,
        }));
        let query = Query { kind: "selector", handler: Some(index), value, ..Query::default() };
        let is_selected = asker.ask(query).map(|answer| answer.as_bool().unwrap_or(false));
        if !answers::is_waiting() {
            known.lock().insert(resource.clone(), is_selected.clone());
        }
        is_selected
    })
}

fn errors_mode(name: &str) -> Option<ErrorsMode> {
    match name {
        "ignored" => Some(ErrorsMode::Ignored),
        "temporary" => Some(ErrorsMode::Temporary),
        "permanent" => Some(ErrorsMode::Permanent),
        _ => None,
    }
}
