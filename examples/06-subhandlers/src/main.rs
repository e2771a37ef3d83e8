//! What you learn: handlers in parts, each with its own retries; finished parts are not repeated.
use kopf::input::{Attempt, Param, SubHandlers};
use kopf::prelude::*;

#[kopf::on::create("kopf.dev", "v1", "drawers")]
async fn fill(spec: &Spec, sub_handlers: SubHandlers) -> Result {
    let items = spec["items"].as_array().cloned().unwrap_or_default();
    for item in items.iter().filter_map(Value::as_str) {
        sub_handlers.add_function_as::<place>(item, item.to_owned());
    }
    sub_handlers.add("label", |name: Name| async move {
        tracing::info!("drawer {name} is labelled");
    });
    sub_handlers.run().await
}

/// Fails at first; only this part is retried.
#[kopf::on::subhandler(backoff = "1s")]
async fn place(item: Param<String>, attempt: Attempt) -> Result<String> {
    if attempt.retry == 0 {
        return Err(kopf::temporary("too heavy").retry_in(1.secs()));
    }
    Ok(format!("{} is placed", *item))
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("subhandlers", [fill])
}

fn main() -> kopf::Exit {
    operator().main()
}
