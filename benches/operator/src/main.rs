//! Our operator for `cargo xtask bench engine`: the variable `CASE` selects the case.

use std::time::Duration;

use kopf::input::{Attempt, Recorder};
use kopf::prelude::*;

#[kopf::on::create("bench.kopf.dev", "v1", "widgets")]
async fn create() -> Result<Value> {
    Ok(json!({"ok": true}))
}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets", id = "create")]
async fn create_silently() {}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets")]
async fn second() -> Result<Value> {
    Ok(json!({"ok": true}))
}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets")]
async fn stubborn(attempt: Attempt) -> Result<Value> {
    if attempt.retry < 2 {
        return Err(kopf::temporary("not yet").retry_in(Duration::from_millis(100)));
    }
    Ok(json!({"ok": true}))
}

#[kopf::on::update("bench.kopf.dev", "v1", "widgets")]
async fn update() -> Result<Value> {
    Ok(json!({"ok": true}))
}

#[kopf::on::delete("bench.kopf.dev", "v1", "widgets")]
async fn delete() {}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets", id = "create")]
async fn tell(recorder: Recorder) {
    recorder.normal("Created", "seen by the handler");
}

/// Objects are kept for indexes, even for empty ones.
#[kopf::on::index("bench.kopf.dev", "v1", "widgets")]
fn nothing() -> Option<(String, String)> {
    None
}

fn main() -> kopf::Exit {
    let case = std::env::var("CASE").unwrap_or_default();
    match case.as_str() {
        "delete" => kopf::operator!("bench", [create, delete]),
        "silent" => kopf::operator!("bench", [create_silently]),
        "two" => kopf::operator!("bench", [create, second]),
        "two-delete" => kopf::operator!("bench", [create, second, delete]),
        "update" => kopf::operator!("bench", [create, update]),
        "retry" => kopf::operator!("bench", [create, stubborn]),
        "event" => kopf::operator!("bench", [tell]),
        "index" => kopf::operator!("bench", [nothing]),
        _ => kopf::operator!("bench", [create]),
    }
    .main()
}
