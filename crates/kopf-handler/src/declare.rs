//! Declarations: handlers with their requirements, created by the attributes and the builder.

use std::sync::Arc;

use kopf_core::{Call, Handler, Invocation, Invoke};

use crate::input::Requirement;

/// The handlers of a function with handler attributes, or of a module or type with
/// `#[kopf::handlers]`.
///
/// The attributes implement it for a type with the name of the function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    label = "has no handler attribute",
    note = "put an attribute such as `#[kopf::on::create(...)]` above the function"
)]
pub trait HandlerSet {
    /// The handlers: one per attribute.
    fn declarations() -> Vec<Declaration>;
}

/// One handler with its requirements.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The handler in the form for the engine.
    pub handler: Handler,
    /// What must exist before the operator starts.
    pub requires: Vec<Requirement>,
}

/// A plain function as user code; for use by the attributes only.
#[doc(hidden)]
pub struct Function(pub fn(Call) -> Invocation);

impl Invoke for Function {
    fn invoke(&self, call: Call) -> Invocation {
        (self.0)(call)
    }
}

impl Declaration {
    /// Creates a declaration without requirements.
    #[must_use]
    pub fn new(handler: Handler) -> Self {
        Self { handler, requires: Vec::new() }
    }
}

/// The user code of a function; for use by the attributes only.
#[doc(hidden)]
#[must_use]
pub fn function(invoke: fn(Call) -> Invocation) -> Arc<dyn Invoke> {
    Arc::new(Function(invoke))
}
