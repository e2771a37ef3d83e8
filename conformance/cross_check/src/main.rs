//! Our side of the cross-check with Kopf: the same handlers as in `conformance/cross_check_operator.py`,
//! in sets of which `$HANDLERS` names one.
//!
//! Every call is noted in the file `$CALLS`. A handler is held back, that is, fails temporarily, for
//! as long as there is a file of its name in the folder `$HOLD`. Started by `conformance/` only.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kopf::Error;
use kopf::Settings;
use kopf::input::{Attempt, Cause, Diff, Recorder, SubHandlers};
use kopf::prelude::*;
use kopf::settings::{DiffbaseStorageSetting, ProgressStorageSetting};
use kopf::storage::{
    AnnotationsDiffBase, AnnotationsProgress, KeyMaker, MultiDiffBase, MultiProgress,
    StatusDiffBase, StatusProgress,
};

mod sets;

#[kopf::on::startup]
async fn configure(settings: &mut Settings) {
    settings.watching.server_timeout = Some(30.secs());
    settings.posting.loggers = std::env::var_os("LOGGERS").is_some();
    settings.execution.rerun_outdated = std::env::var_os("KEEP_OUTDATED").is_none();
    let persistence = &mut settings.persistence;
    match std::env::var("STORAGE").as_deref() {
        Ok("status") => {
            let name = || "myop".to_owned();
            persistence.progress_storage = ProgressStorageSetting::Status { name: name() };
            persistence.diffbase_storage = DiffbaseStorageSetting::Status { name: name() };
        }
        Ok("prefix") => {
            let prefix = || "my-op.example.com".to_owned();
            persistence.finalizer = format!("{}/finalizer", prefix());
            persistence.progress_storage = ProgressStorageSetting::Annotations { prefix: prefix() };
            persistence.diffbase_storage =
                DiffbaseStorageSetting::Annotations { prefix: prefix(), key: "last".to_owned() };
        }
        Ok("multi") => {
            let keys = || KeyMaker::new("my-op.example.com").expect("a prefix");
            persistence.progress_storage =
                ProgressStorageSetting::Custom(Arc::new(MultiProgress(vec![
                    Box::new(AnnotationsProgress::new(keys())),
                    Box::new(StatusProgress::named("myop")),
                ])));
            persistence.diffbase_storage =
                DiffbaseStorageSetting::Custom(Arc::new(MultiDiffBase(vec![
                    Box::new(AnnotationsDiffBase::new(keys(), "last")),
                    Box::new(StatusDiffBase::named("myop")),
                ])));
        }
        _ => {}
    }
}

fn note(handler: &str, attempt: Attempt, cause: Cause) -> Result {
    note_as(handler, attempt.retry, &cause.to_string())
}

fn note_as(handler: &str, retry: u32, reason: &str) -> Result {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("${name} is not set"));
    let line = json!([handler, retry, reason]);
    let mut calls =
        std::fs::OpenOptions::new().create(true).append(true).open(variable("CALLS")?)?;
    calls.write_all(format!("{line}\n").as_bytes())?;
    if Path::new(&variable("HOLD")?).join(handler.replace('/', ".")).exists() {
        return Err(kopf::temporary("held back").retry_in(Duration::from_millis(200)));
    }
    Ok(())
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
async fn first(attempt: Attempt, cause: Cause, spec: &Spec, recorder: Recorder) -> Result<Value> {
    note("first", attempt, cause)?;
    recorder.normal("Created", "seen by first");
    tracing::warn!("first is at work");
    tracing::debug!("nobody wants to know");
    Ok(json!({"message": format!("hello {}", spec["field"].as_str().unwrap_or("None"))}))
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
async fn second(attempt: Attempt, cause: Cause) -> Result<&'static str> {
    note("second", attempt, cause)?;
    if attempt.retry < 1 {
        return Err(kopf::temporary("not yet, ü").retry_in(Duration::from_millis(1500)));
    }
    Ok("done")
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
async fn failing(attempt: Attempt, cause: Cause) -> Result {
    note("failing", attempt, cause)?;
    Err(kopf::permanent("never"))
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", errors = ignored)]
fn ignored(attempt: Attempt, cause: Cause) -> Result {
    note("ignored", attempt, cause)?;
    Err("so what")?;
    Ok(())
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples", retries = 2, backoff = "100ms")]
fn exhausted(attempt: Attempt, cause: Cause) -> Result {
    note("exhausted", attempt, cause)?;
    Err("again and again")?;
    Ok(())
}

const LONG: &str = "a_handler_with_a_name_that_is_longer_than_the_key_of_an_annotation_may_be";

#[kopf::on::create(
    "kopf.dev",
    "v1",
    "kopfexamples",
    id = "a_handler_with_a_name_that_is_longer_than_the_key_of_an_annotation_may_be"
)]
async fn long_name(attempt: Attempt, cause: Cause) -> Result {
    note(LONG, attempt, cause)
}

#[kopf::on::create("kopf.dev", "v1", "kopfexamples")]
#[kopf::on::update("kopf.dev", "v1", "kopfexamples", field = "spec.items")]
async fn parent(sub_handlers: SubHandlers) {
    sub_handlers.add("a", |attempt: Attempt, cause: Cause| async move {
        note("parent/a", attempt, cause)?;
        Ok::<_, Error>("r-a")
    });
    sub_handlers.add("b", |attempt: Attempt, cause: Cause| async move {
        note("parent/b", attempt, cause)?;
        if attempt.retry < 1 {
            return Err(kopf::temporary("not yet").retry_in(Duration::from_millis(100)));
        }
        Ok::<_, Error>("r-b")
    });
    sub_handlers.add("c", |sub_handlers: SubHandlers| async move {
        sub_handlers.add("x", |attempt: Attempt, cause: Cause| async move {
            note("parent/c/x", attempt, cause)?;
            Ok::<_, Error>(json!({"x": 1}))
        });
    });
}

#[kopf::on::field("kopf.dev", "v1", "kopfexamples", field = "spec.field")]
async fn field_fn(attempt: Attempt, cause: Cause, Change { old, new }: Change) -> Result<Value> {
    note("field_fn", attempt, cause)?;
    Ok(json!({"old": old, "new": new}))
}

#[kopf::on::update("kopf.dev", "v1", "kopfexamples")]
async fn changed(attempt: Attempt, cause: Cause, diff: &Diff, patch: &mut Patch) -> Result {
    note("changed", attempt, cause)?;
    let mut fields: Vec<String> = diff.iter().map(|item| item.field.to_string()).collect();
    fields.sort();
    patch.set("status.fields", fields);
    Ok(())
}

#[kopf::on::update("kopf.dev", "v1", "kopfexamples")]
async fn changed_too(attempt: Attempt, cause: Cause) -> Result {
    note("changed_too", attempt, cause)
}

#[kopf::on::resume("kopf.dev", "v1", "kopfexamples")]
async fn resumed(attempt: Attempt, cause: Cause) -> Result {
    note("resumed", attempt, cause)
}

#[kopf::on::delete("kopf.dev", "v1", "kopfexamples")]
async fn delete_first(attempt: Attempt, cause: Cause) -> Result {
    note("delete_first", attempt, cause)
}

#[kopf::on::delete("kopf.dev", "v1", "kopfexamples")]
async fn delete_second(attempt: Attempt, cause: Cause) -> Result {
    note("delete_second", attempt, cause)
}

#[kopf::on::daemon("kopf.dev", "v1", "kopfexamples", labels = {"background": "yes"})]
async fn daemon_fn() -> Value {
    json!({"ran": true})
}

#[kopf::on::timer("kopf.dev", "v1", "kopfexamples", labels = {"background": "yes"}, interval = "600s")]
async fn timer_fn() -> &'static str {
    "ticked"
}

fn main() -> kopf::Exit {
    match std::env::var("HANDLERS").as_deref() {
        Ok("more") => sets::more().main(),
        Ok("optional") => sets::optional().main(),
        Ok("patching") => sets::patching().main(),
        _ => all().main(),
    }
}

fn all() -> kopf::Operator {
    kopf::operator!(
        "cross-check",
        [
            configure,
            first,
            second,
            failing,
            ignored,
            exhausted,
            long_name,
            parent,
            field_fn,
            changed,
            changed_too,
            resumed,
            delete_first,
            delete_second,
            daemon_fn,
            timer_fn,
        ]
    )
}
