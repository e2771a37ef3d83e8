//! The operator: handlers, state and settings, ready to be run.
//!
//! Collects declarations from attributes and closures, checks them all at once, and hands them to
//! the engine. Knows nothing of arguments and terminals.

use std::any::TypeId;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kopf_core::invoke::Extensions;
use kopf_core::{Handler, HandlerKind, Lifecycle, Registry, Settings};
use kopf_engine::{Engine, EngineBuilder};
use kopf_handler::closure::{self, Closure, ForResources, HandlerFn, ToVersion};
use kopf_handler::declare::{Declaration, HandlerSet};
use kopf_handler::input::Requirement;
use kopf_handler::kind;

use crate::Error;

/// An operator in the making.
///
/// ```
/// use kopf::prelude::*;
///
/// #[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
/// async fn create_fn(name: Name) -> Result<Value> {
///     Ok(json!({"message": format!("hello, {name}")}))
/// }
///
/// let operator = kopf::operator!("demo", [create_fn])
///     .on_delete("kopfexamples", |name: Name| async move {
///         tracing::info!("good-bye, {name}");
///     });
/// assert_eq!(operator.handlers().count(), 2);
/// ```
#[must_use = "an operator does nothing until it is run"]
pub struct Operator {
    pub(crate) name: String,
    declarations: Vec<Declaration>,
    state: Vec<Provided>,
    pub(crate) settings: Settings,
    lifecycle: Lifecycle,
}

struct Provided {
    type_id: TypeId,
    source: Source,
}

enum Source {
    Ready(PutState),
    Made(MakeState),
}

type MakeState = Box<dyn FnOnce() -> BoxFuture<'static, Result<PutState, Error>> + Send>;
type PutState = Box<dyn FnOnce(&Extensions) + Send>;

/// Everything that is wrong with an operator, found before it starts.
#[derive(Debug, thiserror::Error)]
#[error("the operator {name} cannot start: {}", problems.join("; "))]
pub struct InvalidOperator {
    name: String,
    /// One sentence per problem.
    pub problems: Vec<String>,
}

/// Makes an operator of functions with handler attributes, by their names.
///
/// ```
/// # use kopf::Settings;
/// # use kopf::prelude::*;
/// mod pods {
///     #[kopf::on::event("pods")]
///     pub async fn spy() {}
/// }
///
/// #[kopf::on::startup]
/// async fn configure(settings: &mut Settings) {
///     settings.posting.enabled = false;
/// }
///
/// let operator = kopf::operator!("demo", [configure, pods::spy]);
/// ```
#[macro_export]
macro_rules! operator {
    ($name:expr, [$($handler:ty),* $(,)?] $(,)?) => {
        $crate::Operator::new($name)$(.declared(<$handler as $crate::__private::HandlerSet>::declarations()))*
    };
}

impl Operator {
    /// An operator without handlers.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            declarations: Vec::new(),
            state: Vec::new(),
            settings: Settings::default(),
            lifecycle: Lifecycle::default(),
        }
    }

    /// Adds a function with handler attributes.
    pub fn handler<D: HandlerSet>(mut self) -> Self {
        self.declarations.extend(D::declarations());
        self
    }

    /// Adds what a function with handler attributes declares; for the macro [`operator!`](crate::operator).
    #[doc(hidden)]
    pub fn declared(mut self, declarations: Vec<Declaration>) -> Self {
        self.declarations.extend(declarations);
        self
    }

    /// Adds a closure with its options, or a handler made otherwise.
    pub fn with(mut self, handler: impl Into<Declaration>) -> Self {
        self.declarations.push(handler.into());
        self
    }

    /// Puts a value in for `State<T>`.
    ///
    /// A function that makes the value goes to [`state_from`](Self::state_from). One method for
    /// both could not tell them apart: functions are values as well, and may be the state themselves.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        let put: PutState = Box::new(move |state| state.insert(Arc::new(value)));
        self.state.push(Provided { type_id: TypeId::of::<T>(), source: Source::Ready(put) });
        self
    }

    /// Puts a value in for `State<T>`, made by an async function when the operator starts.
    ///
    /// If it fails, the operator does not start. A function that only fails, but is not async, is
    /// called at once: `.state(Cloud::load()?)`.
    ///
    /// ```
    /// # use kopf::prelude::*;
    /// struct Cloud;
    /// async fn connect() -> Result<Cloud, std::io::Error> { Ok(Cloud) }
    ///
    /// let operator = kopf::Operator::new("demo").state_from(connect);
    /// ```
    pub fn state_from<T, E, F>(mut self, make: impl FnOnce() -> F + Send + 'static) -> Self
    where
        T: Send + Sync + 'static,
        E: Into<Error>,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let make: MakeState = Box::new(move || {
            let making = make();
            Box::pin(async move {
                let value = Arc::new(making.await.map_err(Into::into)?);
                Ok(Box::new(move |state: &Extensions| state.insert(value)) as PutState)
            })
        });
        self.state.push(Provided { type_id: TypeId::of::<T>(), source: Source::Made(make) });
        self
    }

    /// Changes the settings that the operator starts with; startup handlers may still change them.
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Derives the finalizer, the prefix of annotations, the field manager and the name of the Lease
    /// from the name of the operator, so that it never collides with another one. By default, they
    /// are those of Kopf.
    pub fn own_names(mut self) -> Self {
        self.settings.own_names(&self.name);
        self
    }

    /// Chooses among the handlers that are due for an object in this way; by default all of them
    /// run, those with fewer attempts first.
    ///
    /// ```
    /// use kopf::lifecycle::Lifecycle;
    /// let as_kopf_does = kopf::Operator::new("demo").lifecycle(Lifecycle::Asap);
    /// ```
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// The name of the operator.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All handlers, in the order of their declaration.
    pub fn handlers(&self) -> impl Iterator<Item = &Handler> {
        self.declarations.iter().map(|declaration| &declaration.handler)
    }

    /// Checks that everything that the handlers require is there.
    ///
    /// # Errors
    /// Fails with all problems at once.
    pub fn check(&self) -> Result<(), InvalidOperator> {
        let mut problems = Vec::new();
        for declaration in &self.declarations {
            let id = &declaration.handler.id;
            for requirement in &declaration.requires {
                if !self.meets(&declaration.handler, requirement) {
                    problems.push(match requirement {
                        Requirement::State { type_name, .. } => {
                            format!("handler {id} takes `State<{type_name}>`, but neither `.state(...)` nor `.state_from(...)` gives it")
                        }
                        Requirement::Children { type_name } => {
                            format!("handler {id} takes `Children<{type_name}>`, but no `.children(...)` says that they are watched")
                        }
                        Requirement::Index { name } => {
                            format!("handler {id} takes the index {name}, which is not in the operator")
                        }
                    });
                }
            }
        }
        problems.extend(self.repeated_ids());
        problems.extend(kopf_core::convert::problems(self.handlers()));
        if problems.is_empty() {
            return Ok(());
        }
        problems.dedup();
        Err(InvalidOperator { name: self.name.clone(), problems })
    }

    fn meets(&self, handler: &Handler, requirement: &Requirement) -> bool {
        match requirement {
            Requirement::State { type_id, .. } => {
                self.state.iter().any(|provided| provided.type_id == *type_id)
            }
            Requirement::Children { .. } => !handler.children.is_empty(),
            Requirement::Index { name } => self
                .handlers()
                .any(|handler| matches!(handler.kind, HandlerKind::Index) && &*handler.id == *name),
        }
    }

    /// Two functions under one id would share their progress and overwrite their results.
    fn repeated_ids(&self) -> Vec<String> {
        let handlers: Vec<_> = self.handlers().collect();
        let mut problems = Vec::new();
        for (index, handler) in handlers.iter().enumerate() {
            let is_twin = |other: &&&Handler| {
                other.id == handler.id
                    && other.selector.is_some() == handler.selector.is_some()
                    && !Arc::ptr_eq(&other.invoke, &handler.invoke)
            };
            if handlers[..index].iter().any(|other| is_twin(&other)) {
                let id = &handler.id;
                problems
                    .push(format!("two handlers have the id {id}: give one of them `id = ...`"));
            }
        }
        problems
    }

    /// Makes the values of the state that take their time.
    pub(crate) async fn make_state(&mut self) -> Result<(), Error> {
        let mut ready = Vec::new();
        for Provided { type_id, source } in std::mem::take(&mut self.state) {
            let put = match source {
                Source::Ready(put) => put,
                Source::Made(make) => make().await?,
            };
            ready.push(Provided { type_id, source: Source::Ready(put) });
        }
        self.state = ready;
        Ok(())
    }

    /// Forgets all handlers of other kinds.
    #[cfg(feature = "cli")]
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&HandlerKind) -> bool) {
        self.declarations.retain(|declaration| is_kept(&declaration.handler.kind));
    }

    /// The engine in the making, with the settings as they are changed for this run.
    ///
    /// # Panics
    /// Panics when a value of the state is still to be made.
    pub(crate) fn into_builder(self, change: impl FnOnce(&mut Settings)) -> EngineBuilder {
        let state = Extensions::default();
        for provided in self.state {
            match provided.source {
                Source::Ready(put) => put(&state),
                Source::Made(_) => {
                    panic!("values of `state_from` are made by `start` and `run` only")
                }
            }
        }
        let mut settings = self.settings;
        change(&mut settings);
        let handlers = self.declarations.into_iter().map(|declaration| declaration.handler);
        let builder = Engine::builder(handlers.collect::<Registry>());
        builder.settings(settings).state(state).lifecycle(self.lifecycle)
    }

    fn add<K: kind::Kind + Clone>(self, handler: Closure<K>) -> Self {
        let mut declaration = Declaration::from(handler.clone());
        // The second closure of a kind must not share the progress of the first.
        let is_taken = |id: &str| self.handlers().any(|handler| &*handler.id == id);
        let mut number = 1;
        while is_taken(&declaration.handler.id) {
            number += 1;
            let name = format!("{}_{number}", handler.name());
            declaration = handler.clone().id(&name).into();
        }
        self.with(declaration)
    }
}

macro_rules! builder_methods {
    ($($(#[$doc:meta])* $method:ident = $function:ident, $marker:ident;)*) => {
        impl Operator {$(
            $(#[$doc])*
            ///
            /// # Panics
            /// Panics when the texts do not name a resource; they are part of the program.
            pub fn $method<Inputs: 'static>(
                self,
                resources: impl ForResources,
                function: impl HandlerFn<kind::$marker, Inputs>,
            ) -> Self {
                self.add(closure::$function(resources, function))
            }
        )*}
    };
}

builder_methods! {
    /// Calls a closure for objects that were never handled before.
    on_create = create, Create;
    /// Calls a closure for essential changes.
    on_update = update, Update;
    /// Calls a closure for requested deletions.
    on_delete = delete, Delete;
    /// Calls a closure for objects that exist when the operator starts.
    on_resume = resume, Resume;
    /// Calls a closure for raw events.
    on_event = event, Event;
    /// Fills an index by a closure; `closure::index` gives it the name to find it by.
    index = index, Index;
    /// Runs a closure for every object while it exists.
    daemon = daemon, Daemon;
    /// Checks objects by a closure before they are stored.
    on_validate = validate, Validate;
    /// Changes objects by a closure before they are stored.
    on_mutate = mutate, Mutate;
}

impl Operator {
    /// Gives every object the children that a closure says, of these kinds.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kopf::prelude::*;
    ///
    /// let image: Arc<str> = "busybox".into();
    /// let operator = kopf::Operator::new("demo").desired("crews.example.com", ["pods.v1"], move || {
    ///     let containers = json!([{"name": "sailor", "image": *image}]);
    ///     async move { vec![json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}})] }
    /// });
    /// ```
    ///
    /// # Panics
    /// Panics when the texts do not name a resource, or when there are none for the children; they
    /// are part of the program.
    pub fn desired<Inputs: 'static, C: ForResources>(
        self,
        resources: impl ForResources,
        children: impl IntoIterator<Item = C>,
        function: impl HandlerFn<kind::Desired, Inputs>,
    ) -> Self {
        self.add(closure::desired(resources, children, function))
    }

    /// Calls a closure when an object or one of its children of these kinds changes.
    ///
    /// # Panics
    /// Panics when the texts do not name a resource, or when there are none for the children; they
    /// are part of the program.
    pub fn observe<Inputs: 'static, C: ForResources>(
        self,
        resources: impl ForResources,
        children: impl IntoIterator<Item = C>,
        function: impl HandlerFn<kind::Observe, Inputs>,
    ) -> Self {
        self.add(closure::observe(resources, children, function))
    }

    /// Converts objects by a closure from one version of a custom resource to another.
    ///
    /// ```
    /// use kopf::Error;
    /// use kopf::prelude::*;
    ///
    /// let databases = ("example.com", "v2", "databases");
    /// let operator = kopf::Operator::new("demo").on_convert(databases, "v1", |spec: Spec| async move {
    ///     Ok::<_, Error>(json!({"spec": {"size": spec["size"].to_string()}}))
    /// });
    /// ```
    ///
    /// # Panics
    /// Panics when the texts do not name a resource; they are part of the program.
    pub fn on_convert<Inputs: 'static>(
        self,
        resources: impl ForResources,
        to: impl ToVersion,
        function: impl HandlerFn<kind::Convert, Inputs>,
    ) -> Self {
        self.add(closure::convert(resources, to, function))
    }

    /// Calls a closure for changes of one field.
    ///
    /// # Panics
    /// Panics when the texts do not name a resource; they are part of the program.
    pub fn on_field<Inputs: 'static>(
        self,
        resources: impl ForResources,
        path: &str,
        function: impl HandlerFn<kind::Field, Inputs>,
    ) -> Self {
        self.add(closure::field(resources, path, function))
    }

    /// Runs a closure repeatedly for every object while it exists.
    ///
    /// # Panics
    /// Panics when the texts do not name a resource; they are part of the program.
    pub fn timer<Inputs: 'static>(
        self,
        resources: impl ForResources,
        interval: Duration,
        function: impl HandlerFn<kind::Timer, Inputs>,
    ) -> Self {
        self.add(closure::timer(resources, interval, function))
    }

    /// Calls a closure before the operator touches the cluster.
    pub fn on_startup<Inputs: 'static>(
        self,
        function: impl HandlerFn<kind::Startup, Inputs>,
    ) -> Self {
        self.add(closure::startup(function))
    }

    /// Calls a closure after all else has stopped.
    pub fn on_cleanup<Inputs: 'static>(
        self,
        function: impl HandlerFn<kind::Cleanup, Inputs>,
    ) -> Self {
        self.add(closure::cleanup(function))
    }

    /// Calls a closure to get credentials.
    pub fn on_login<Inputs: 'static>(self, function: impl HandlerFn<kind::Login, Inputs>) -> Self {
        self.add(closure::login(function))
    }

    /// Calls a closure for the liveness answer.
    pub fn on_probe<Inputs: 'static>(self, function: impl HandlerFn<kind::Probe, Inputs>) -> Self {
        self.add(closure::probe(function))
    }
}

#[cfg(test)]
mod tests;
