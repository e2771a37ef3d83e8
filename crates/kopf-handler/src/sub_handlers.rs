//! Sub-handlers: parts of a handler with their own retries and progress.

use std::any::Any;
use std::sync::Arc;

use kopf_core::handler::Touches;
use kopf_core::{Call, HandlerKind};

use crate::closure::{Closure, HandlerFn, sub};
use crate::declare::{Declaration, HandlerSet};
use crate::error::Error;
use crate::input::Input;
use crate::kind::{ChangeKind, Sub};

/// Adds sub-handlers to the running handler and runs them.
///
/// They run after the function returns, or when it calls [`SubHandlers::run`]. Succeeded ones are
/// not run again when the handler is retried because of the others.
///
/// ```ignore
/// #[kopf::on::create("kopfexamples")]
/// async fn create(spec: &Spec, sub_handlers: SubHandlers) {
///     for item in spec["items"].as_array().into_iter().flatten() {
///         let item = item.to_string();
///         sub_handlers.add(&item.clone(), move || {
///             let item = item.clone();
///             async move { tracing::info!("item {item}") }
///         });
///     }
/// }
/// ```
#[derive(Clone)]
pub struct SubHandlers(Arc<dyn kopf_core::invoke::SubHandlers>);

impl SubHandlers {
    /// Adds a closure as a sub-handler with this name.
    pub fn add<Inputs: 'static>(&self, name: &str, function: impl HandlerFn<Sub, Inputs>) {
        self.add_with(sub(function).id(name));
    }

    /// Adds a closure with options, made by [`sub`].
    pub fn add_with(&self, handler: Closure<Sub>) {
        self.0.register(Declaration::from(handler).handler);
    }

    /// Adds a function with `#[kopf::on::subhandler]`.
    pub fn add_function<D: HandlerSet>(&self) {
        for declaration in sub_handlers::<D>() {
            self.0.register(declaration.handler);
        }
    }

    /// Adds a function with `#[kopf::on::subhandler]` under another name, with its own `Param<T>`.
    pub fn add_function_as<D: HandlerSet>(&self, name: &str, param: impl Any + Send + Sync) {
        let param: Arc<dyn Any + Send + Sync> = Arc::new(param);
        for mut declaration in sub_handlers::<D>() {
            declaration.handler.id = name.into();
            declaration.handler.param = Some(Arc::clone(&param));
            self.0.register(declaration.handler);
        }
    }

    /// Runs the sub-handlers added so far that are due.
    ///
    /// # Errors
    /// Fails if some are not finished; the handler should pass this error on with `?`.
    pub async fn run(&self) -> Result<(), Error> {
        Ok(self.0.execute().await?)
    }
}

fn sub_handlers<D: HandlerSet>() -> impl Iterator<Item = Declaration> {
    let is_sub = |it: &Declaration| matches!(it.handler.kind, HandlerKind::Sub);
    D::declarations().into_iter().filter(is_sub)
}

#[diagnostic::do_not_recommend]
impl<K: ChangeKind> Input<K> for SubHandlers {
    fn take(call: &Call) -> Result<Self, Error> {
        call.sub_handlers.clone().map(Self).ok_or_else(|| {
            let id = &call.handler.id;
            Error::from(format!("handler {id} cannot have sub-handlers here")).permanent()
        })
    }

    /// Results of sub-handlers are stored in the status, like those of handlers.
    fn touches() -> Touches {
        Touches { object: true, status: true, ..Touches::nothing() }
    }
}
