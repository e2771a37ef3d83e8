//! The other sets of handlers: filters, error modes, indexes, optional deletion, patches.

use std::time::Duration;

use kopf::Error;
use kopf::index::Index;
use kopf::input::{Attempt, Cause, Diff, Stopped, SubHandlers};
use kopf::prelude::*;

use super::{configure, note, note_as};

/// Filters, error modes, events, indexes, built-in resources.
pub(crate) fn more() -> kopf::Operator {
    kopf::operator!(
        "cross-check-more",
        [
            configure,
            seen,
            by_field,
            indexed,
            labelled,
            unlabelled,
            annotated,
            large,
            one,
            one_to_two,
            removed,
            relabelled,
            strict,
            patient,
            hasty,
            single,
            family,
            still_there,
            deleting,
            mapped,
            cleaned,
        ]
    )
}

/// Deletion that nobody has to wait for.
pub(crate) fn optional() -> kopf::Operator {
    kopf::operator!("cross-check-optional", [configure, made, gone, holding])
}

/// Handlers that change what they handle.
pub(crate) fn patching() -> kopf::Operator {
    kopf::operator!("cross-check-patching", [configure, changing, rehandled])
}

#[kopf::on::event("kopf.dev", "v1", "kopfexamples")]
async fn seen() {}

#[kopf::on::index("kopf.dev", "v1", "kopfexamples")]
fn by_field(spec: &Spec, name: Name) -> Option<(String, String)> {
    Some((spec["field"].as_str()?.to_owned(), name.into()))
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
async fn indexed(attempt: Attempt, cause: Cause, fields: &Index<by_field>) -> Result<Vec<String>> {
    note("indexed", attempt, cause)?;
    let mut keys = fields.keys();
    keys.sort();
    Ok(keys)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", labels = {"tier": "live"})]
async fn labelled(attempt: Attempt, cause: Cause) -> Result {
    note("labelled", attempt, cause)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", labels = {"tier": absent})]
async fn unlabelled(attempt: Attempt, cause: Cause) -> Result {
    note("unlabelled", attempt, cause)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", annotations = {"note": present})]
async fn annotated(attempt: Attempt, cause: Cause) -> Result {
    note("annotated", attempt, cause)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", when = |spec: &Spec| spec["n"].as_i64() > Some(1))]
async fn large(attempt: Attempt, cause: Cause) -> Result {
    note("large", attempt, cause)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", field = "spec.n", value = 1)]
async fn one(attempt: Attempt, cause: Cause) -> Result<&'static str> {
    note("one", attempt, cause)?;
    Ok("one")
}

#[kopf::on::update("kopf.dev", "v1", "kopfexamples", field = "spec.n", old = 1, new = 2)]
async fn one_to_two(attempt: Attempt, cause: Cause) -> Result {
    note("one_to_two", attempt, cause)
}

#[kopf::on::field("kopf.dev", "v1", "kopfexamples", field = "spec.n", new = absent)]
async fn removed(attempt: Attempt, cause: Cause, Change { old, .. }: Change) -> Result<Value> {
    note("removed", attempt, cause)?;
    Ok(json!({"old": old}))
}

#[kopf::on::update("kopf.dev", "v1", "kopfexamples", field = "metadata.labels")]
async fn relabelled(attempt: Attempt, cause: Cause) -> Result {
    note("relabelled", attempt, cause)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", errors = permanent)]
fn strict(attempt: Attempt, cause: Cause) -> Result {
    note("strict", attempt, cause)?;
    Err("no")?;
    Ok(())
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", errors = temporary, backoff = "100ms")]
fn patient(attempt: Attempt, cause: Cause) -> Result<u32> {
    note("patient", attempt, cause)?;
    if attempt.retry < 2 {
        Err("soon")?;
    }
    Ok(attempt.retry)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", timeout = "500ms")]
async fn hasty(attempt: Attempt, cause: Cause) -> Result {
    note("hasty", attempt, cause)?;
    Err(kopf::temporary("later").retry_in(Duration::from_millis(200)))
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", retries = 1)]
async fn single(attempt: Attempt, cause: Cause) -> Result {
    note("single", attempt, cause)?;
    Err(kopf::temporary("never again").retry_in(Duration::from_millis(100)))
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
async fn family(sub_handlers: SubHandlers) {
    sub_handlers.add("good", |attempt: Attempt, cause: Cause| async move {
        note("family/good", attempt, cause)?;
        Ok::<_, Error>(json!({"good": true}))
    });
    sub_handlers.add("bad", |attempt: Attempt, cause: Cause| async move {
        note("family/bad", attempt, cause)?;
        Err::<(), _>(kopf::permanent("bad"))
    });
}

#[kopf::on::resume("kopf.dev", "v1", "kopfexamples", deleted)]
async fn still_there(attempt: Attempt, cause: Cause) -> Result {
    note("still_there", attempt, cause)
}

#[kopf::on::delete("kopf.dev", "v1", "kopfexamples")]
async fn deleting(attempt: Attempt, cause: Cause) -> Result {
    note("deleting", attempt, cause)
}

#[kopf::on::create("v1", "configmaps", labels = {"mine": "yes"})]
async fn mapped(attempt: Attempt, cause: Cause) -> Result {
    note("mapped", attempt, cause)
}

#[kopf::on::cleanup]
async fn cleaned() -> Result {
    note_as("cleaned", 0, "cleanup")
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
async fn made(attempt: Attempt, cause: Cause) -> Result {
    note("made", attempt, cause)
}

#[kopf::on::delete("kopf.dev", "v1", "kopfexamples", optional)]
async fn gone(attempt: Attempt, cause: Cause) -> Result {
    note("gone", attempt, cause)
}

#[kopf::on::daemon("kopf.dev", "v1", "kopfexamples", labels = {"background": "yes"})]
async fn holding(stopped: Stopped) {
    stopped.requested().await;
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
async fn changing(attempt: Attempt, cause: Cause, patch: &mut Patch) -> Result {
    note("changing", attempt, cause)?;
    patch.set("spec.added", true);
    patch.set("metadata.labels.added", "yes");
    patch.set("status.changed", true);
    patch.transform(|body| {
        if let Some(items) = body["spec"]["items"].as_array_mut()
            && !items.contains(&json!("x"))
        {
            items.push(json!("x"));
        }
    });
    Ok(())
}

#[kopf::on::update("kopf.dev", "v1", "kopfexamples")]
async fn rehandled(attempt: Attempt, cause: Cause, diff: &Diff) -> Result<Vec<String>> {
    note("rehandled", attempt, cause)?;
    let mut fields: Vec<String> = diff.iter().map(|item| item.field.to_string()).collect();
    fields.sort();
    Ok(fields)
}
