//! What you learn: how handlers fail, and when they are tried again.
use kopf::prelude::*;

/// Any error works with `?`; it is tried again after the backoff, five times at most.
#[kopf::on::create("kopf.dev", "v1", "trials", retries = 5, backoff = "10s")]
async fn arbitrary(spec: &Spec) -> Result {
    let size: i64 = spec["size"].as_str().unwrap_or("none").parse()?;
    println!("the size is {size}");
    Ok(())
}

/// A temporary error says itself when to try again.
#[kopf::on::create("kopf.dev", "v1", "trials")]
async fn temporary(attempt: Attempt) -> Result<String> {
    if attempt.retry < 3 {
        return Err(kopf::temporary("not yet").retry_in(1.secs()));
    }
    Ok(format!("done after {} attempts", attempt.retry + 1))
}

/// A permanent error is never tried again; other handlers go on.
#[kopf::on::create("kopf.dev", "v1", "trials")]
async fn permanent(spec: &Spec) -> Result {
    let text = spec["file"].as_str().unwrap_or("/nowhere");
    std::fs::read(text).permanent()?;
    Ok(())
}

/// Errors of this one are told and forgotten.
#[kopf::on::create("kopf.dev", "v1", "trials", errors = ignored)]
fn ignored() -> Result<(), String> {
    Err("never mind".into())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("exceptions", [arbitrary, temporary, permanent, ignored])
}

fn main() -> kopf::Exit {
    operator().main()
}
