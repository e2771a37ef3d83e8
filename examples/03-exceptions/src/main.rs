//! What you learn: how handlers fail, and when they are retried.
use kopf::input::Attempt;
use kopf::prelude::*;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "kopf.dev", version = "v1", kind = "Trial", namespaced)]
#[kube(status = "TrialStatus")]
struct TrialSpec {
    size: Option<String>,
    file: Option<String>,
}

/// The return value of a handler is stored in the status, under the name of the function.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct TrialStatus {
    temporary: Option<String>,
}

/// Any error works with `?`; the handler is retried after the backoff, at most five times.
#[kopf::on::create(Trial, retries = 5, backoff = "10s")]
async fn arbitrary(trial: &Trial) -> Result {
    let size: i64 = trial.spec.size.as_deref().unwrap_or("none").parse()?;
    println!("the size is {size}");
    Ok(())
}

/// A temporary error says when to retry.
#[kopf::on::create(Trial)]
async fn temporary(attempt: Attempt) -> Result<String> {
    if attempt.retry < 3 {
        return Err(kopf::temporary("not yet").retry_in(1.secs()));
    }
    Ok(format!("done after {} attempts", attempt.retry + 1))
}

/// A handler is not retried after a permanent error; other handlers still run.
#[kopf::on::create(Trial)]
async fn permanent(trial: &Trial) -> Result {
    let file = trial.spec.file.as_deref().unwrap_or("/nowhere");
    std::fs::read(file).permanent()?;
    Ok(())
}

/// Errors in this handler are logged and ignored.
#[kopf::on::create(Trial, errors = ignored)]
fn ignored() -> Result<(), String> {
    Err("never mind".into())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("exceptions", [arbitrary, temporary, permanent, ignored])
}

fn main() -> kopf::Exit {
    operator().main()
}
