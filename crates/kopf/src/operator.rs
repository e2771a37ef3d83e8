//! The operator: handlers, state and settings, ready to run.
//!
//! Collects declarations from attributes and closures, checks them all at once, and hands them to
//! the engine. Knows nothing about arguments and terminals.

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

/// An operator under construction.
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

/// All problems of an operator, found before it starts.
#[derive(Debug, thiserror::Error)]
#[error("the operator {name} cannot start: {}", problems.join("; "))]
pub struct InvalidOperator {
    name: String,
    /// One sentence per problem.
    pub problems: Vec<String>,
}

/// Builds an operator from functions with handler attributes, by their names.
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
    /// Creates an operator without handlers.
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

    /// Adds the handlers that a function's attributes declare; for the macro
    /// [`operator!`](crate::operator).
    #[doc(hidden)]
    pub fn declared(mut self, declarations: Vec<Declaration>) -> Self {
        self.declarations.extend(declarations);
        self
    }

    /// Adds a closure with its options, or a handler made in another way.
    pub fn with(mut self, handler: impl Into<Declaration>) -> Self {
        self.declarations.push(handler.into());
        self
    }

    /// Provides a value for `State<T>`.
    ///
    /// Use [`state_from`](Self::state_from) for a function that creates the value. A single method
    /// could not distinguish the two: a function is a value too, and may itself be the state.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        let put: PutState = Box::new(move |state| state.insert(Arc::new(value)));
        self.state.push(Provided { type_id: TypeId::of::<T>(), source: Source::Ready(put) });
        self
    }

    /// Provides a value for `State<T>` that an async function creates when the operator starts.
    ///
    /// If the function fails, the operator does not start. Call a fallible function that is not
    /// async directly: `.state(Cloud::load()?)`.
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

    /// Derives the finalizer, the annotation prefix, the field manager and the Lease name from the
    /// name of the operator, so that they never collide with those of another operator. By default,
    /// they are Kopf's.
    pub fn own_names(mut self) -> Self {
        self.settings.own_names(&self.name);
        self
    }

    /// Sets how to choose among the handlers that are due for an object. By default, all of them
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

    /// All handlers, in declaration order.
    pub fn handlers(&self) -> impl Iterator<Item = &Handler> {
        self.declarations.iter().map(|declaration| &declaration.handler)
    }

    /// Checks that everything the handlers require is provided.
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

    /// Two functions with the same id would share their progress and overwrite each other's
    /// results.
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

    /// Creates the values of the state that are created asynchronously.
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

    /// Removes all handlers of other kinds.
    #[cfg(feature = "cli")]
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&HandlerKind) -> bool) {
        self.declarations.retain(|declaration| is_kept(&declaration.handler.kind));
    }

    /// Returns the engine builder, with the settings changed for this run.
    ///
    /// # Panics
    /// Panics if a value of the state has not been created yet.
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
        // The second closure of a kind must not share the progress of the first one.
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
            /// Panics if the strings do not name a resource, which is a mistake in the program.
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
    /// Calls a closure for objects that already exist when the operator starts.
    on_resume = resume, Resume;
    /// Calls a closure for raw events.
    on_event = event, Event;
    /// Fills an index with a closure; use `closure::index` to give the index its name.
    index = index, Index;
    /// Runs a closure for every object while it exists.
    daemon = daemon, Daemon;
    /// Validates objects with a closure before they are stored.
    on_validate = validate, Validate;
    /// Mutates objects with a closure before they are stored.
    on_mutate = mutate, Mutate;
}

impl Operator {
    /// Gives every object the children that a closure returns, of these kinds.
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
    /// Panics if the strings do not name a resource, or if no resource is given for the children,
    /// which are mistakes in the program.
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
    /// Panics if the strings do not name a resource, or if no resource is given for the children,
    /// which are mistakes in the program.
    pub fn observe<Inputs: 'static, C: ForResources>(
        self,
        resources: impl ForResources,
        children: impl IntoIterator<Item = C>,
        function: impl HandlerFn<kind::Observe, Inputs>,
    ) -> Self {
        self.add(closure::observe(resources, children, function))
    }

    /// Converts objects from one version of a custom resource to another with a closure.
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
    /// Panics if the strings do not name a resource, which is a mistake in the program.
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
    /// Panics if the strings do not name a resource, which is a mistake in the program.
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
    /// Panics if the strings do not name a resource, which is a mistake in the program.
    pub fn timer<Inputs: 'static>(
        self,
        resources: impl ForResources,
        interval: Duration,
        function: impl HandlerFn<kind::Timer, Inputs>,
    ) -> Self {
        self.add(closure::timer(resources, interval, function))
    }

    /// Calls a closure before the operator connects to the cluster.
    pub fn on_startup<Inputs: 'static>(
        self,
        function: impl HandlerFn<kind::Startup, Inputs>,
    ) -> Self {
        self.add(closure::startup(function))
    }

    /// Calls a closure after everything else has stopped.
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

    /// Calls a closure for the response of the liveness probe.
    pub fn on_probe<Inputs: 'static>(self, function: impl HandlerFn<kind::Probe, Inputs>) -> Self {
        self.add(closure::probe(function))
    }
}

#[cfg(test)]
mod tests;
