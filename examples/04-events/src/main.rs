//! What you learn: handlers for raw events, with and without types; errors in them are ignored.
use k8s_openapi::api::core::v1::Pod;
use kopf::input::{EventKind, Namespace, RawEvent};
use kopf::prelude::*;

/// Built-in kinds also have types, and labels select the objects.
#[kopf::on::event(Pod, labels = {"app": "web", "legacy": absent})]
async fn pods(pod: &Pod, kind: Option<EventKind>, namespace: Namespace, name: Name) {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    println!("{kind:?} of pod {namespace}/{name}, which is {}", phase.unwrap_or("new"));
}

/// Without a type: the resource is given by name, and the event is JSON.
#[kopf::on::event("kopf.dev", "v1", "greetings")]
async fn greetings(event: RawEvent) {
    println!("event received: {event}");
}

#[kopf::on::event("kopf.dev", "v1", "greetings")]
async fn failing() -> Result {
    Err("oops!")?;
    Ok(())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("events", [pods, greetings, failing])
}

fn main() -> kopf::Exit {
    operator().main()
}
