//! An operator made from closures, for the tests of this crate.

use std::sync::Arc;

use kopf_core::registry::Registry;
use kopf_core::{Call, Handler, HandlerKind, Invocation, Invoke, Output, Returned};
use kopf_engine::{Engine, EngineBuilder};
use kopf_model::Selector;
use serde_json::{Value, json};

/// A function as a handler.
struct Function(fn(&Call) -> Returned);

impl Invoke for Function {
    fn invoke(&self, call: Call) -> Invocation {
        let function = self.0;
        Invocation::Future(Box::pin(async move { function(&call) }))
    }
}

/// A function as a blocking handler.
pub(crate) struct BlockingFunction(pub(crate) fn(&Call) -> Returned);

impl Invoke for BlockingFunction {
    fn invoke(&self, call: Call) -> Invocation {
        let function = self.0;
        Invocation::Blocking(Box::new(move || function(&call)))
    }
}

/// A handler for greetings, which have no explicit definition.
pub(crate) fn handler(id: &str, kind: HandlerKind, function: fn(&Call) -> Returned) -> Handler {
    Handler::new(id, kind, Arc::new(Function(function))).for_resources(Selector::exact(
        "kopf.dev",
        "v1",
        "greetings",
    ))
}

/// Greets on creation, and holds the object until its deletion.
pub(crate) fn greeter() -> EngineBuilder {
    let create = handler("create_fn", HandlerKind::Create, |_| {
        Ok(Output::Json(json!({"message": "hello"})))
    });
    let update = handler("update_fn", HandlerKind::Update, |_| Ok(Output::Json(json!(true))));
    let delete =
        handler("delete_fn", HandlerKind::Delete { optional: false }, |_| Ok(Output::Nothing));
    let handlers = [create, update, delete].map(|mut handler| {
        handler.access.touches.events = false;
        handler
    });
    Engine::builder(Registry::from_iter(handlers))
}

/// Whether the engine has finished with an object.
pub(crate) fn is_handled(object: &Value) -> bool {
    let notes = &object["metadata"]["annotations"];
    notes["kopf.zalando.org/last-handled-configuration"].is_string()
}
