//! The examples survive torture and kill -9, and need exactly their generated rights.

mod changing;
mod deploying;
mod families;
mod kinds;
mod monitoring;
mod running;
mod whole;

use kopf::prelude::Value;
use kopf::testing::Program;

/// An example as a separate process.
fn example(name: &str) -> Program {
    let program = Program::new(env!("CARGO_BIN_EXE_any-example")).variable("EXAMPLE", name);
    program.argument("--standalone")
}

/// Whether the object was handled in its current state.
fn is_handled(object: &Value) -> bool {
    let notes = &object["metadata"]["annotations"];
    let handled = notes["kopf.zalando.org/last-handled-configuration"].as_str();
    let handled = handled.and_then(|text| serde_json::from_str::<Value>(text).ok());
    handled.is_some_and(|handled| handled["spec"] == object["spec"])
}

/// Whether the object has the operator's finalizer, because of a daemon, a timer or a deletion
/// handler.
fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty())
}
