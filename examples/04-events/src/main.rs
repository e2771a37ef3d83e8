//! What you learn: spies on raw events; whatever happens in them is ignored.
use kopf::prelude::*;

#[kopf::on::event("kopf.dev", "v1", "greetings")]
async fn event_fn_with_error() -> Result {
    Err("oops!")?;
    Ok(())
}

#[kopf::on::event("kopf.dev", "v1", "greetings")]
async fn normal_event_fn(event: RawEvent) {
    println!("event received: {event}");
}

/// Built-in kinds work as well, and labels choose among the objects.
#[kopf::on::event("v1", "pods", labels = {"app": "web", "legacy": absent})]
async fn pods(kind: Option<EventKind>, name: Name, namespace: Namespace) {
    println!("{kind:?} of pod {namespace}/{name}");
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("events", [event_fn_with_error, normal_event_fn, pods])
}

fn main() -> kopf::Exit {
    operator().main()
}
